import type { SearchHit } from "../api/model.ts";

export interface HitsOfSession {
  session: string;
  project: string | null;
  hits: SearchHit[];
}

/** Hits by session; sessions keep the order of their best hit. */
export function groupHits(hits: SearchHit[]): HitsOfSession[] {
  const groups = new Map<string, HitsOfSession>();
  for (const hit of hits) {
    const group = groups.get(hit.session_id) ?? { session: hit.session_id, project: hit.project ?? null, hits: [] };
    group.hits.push(hit);
    groups.set(hit.session_id, group);
  }
  return [...groups.values()];
}

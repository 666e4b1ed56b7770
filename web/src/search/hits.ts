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
    const key = hit.key ?? hit.session_id;
    const group = groups.get(key) ?? { session: key, project: hit.project ?? null, hits: [] };
    group.hits.push(hit);
    groups.set(key, group);
  }
  return [...groups.values()];
}

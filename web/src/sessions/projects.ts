import type { SessionRow } from "../api/model.ts";

export interface ProjectGroup {
  project: string;
  cwd: string | null;
  sessions: SessionRow[];
}

/** Sessions by project; the order of projects is that of their newest session. */
export function groupByProject(rows: SessionRow[]): ProjectGroup[] {
  const groups = new Map<string, ProjectGroup>();
  for (const row of rows) {
    const group = groups.get(row.project) ?? { project: row.project, cwd: row.cwd, sessions: [] };
    group.sessions.push(row);
    groups.set(row.project, group);
  }
  return [...groups.values()];
}

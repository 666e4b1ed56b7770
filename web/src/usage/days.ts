/** A local day as `2026-11-16`. */
export function dayOf(time: Date): string {
  const two = (value: number) => String(value).padStart(2, "0");
  return `${time.getFullYear()}-${two(time.getMonth() + 1)}-${two(time.getDate())}`;
}

/** The day `count` days before today. */
export function daysBack(count: number, now = new Date()): string {
  return dayOf(new Date(now.getFullYear(), now.getMonth(), now.getDate() - count));
}

/** One value for each day from `since` to today, with 0 for days without rows. */
export function fillDays(
  rows: { key: string; value: number }[],
  since: string,
  now = new Date(),
): { key: string; value: number }[] {
  const values = new Map(rows.map((row) => [row.key, row.value]));
  const [year = 1970, month = 1, day = 1] = since.split("-").map(Number);
  const days: { key: string; value: number }[] = [];
  const today = dayOf(now);
  for (let offset = 0; offset < 4000; offset += 1) {
    const key = dayOf(new Date(year, month - 1, day + offset));
    days.push({ key, value: values.get(key) ?? 0 });
    if (key >= today) break;
  }
  return days;
}

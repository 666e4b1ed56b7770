// Numbers, money and times as the page writes them. Exact values belong in a tooltip.

/** Dollars to the cent, to the mill below one cent; `$0` for nothing. */
export function money(usd: number | null | undefined): string {
  if (usd === null || usd === undefined || Number.isNaN(usd)) return "–";
  const size = Math.abs(usd);
  const sign = usd < 0 ? "−" : "";
  if (size === 0) return "$0";
  if (size < 0.0005) return `${sign}<$0.001`;
  if (size < 0.0095) return `${sign}$${size.toFixed(3)}`;
  if (size < 1000) return `${sign}$${size.toFixed(2)}`;
  return `${sign}$${Math.round(size).toLocaleString("en-US")}`;
}

/** Dollars with all the digits that were counted, for tooltips. */
export function exactMoney(usd: number | null | undefined): string {
  if (usd === null || usd === undefined) return "";
  return `$${Number(usd.toFixed(6))}`;
}

/** 950, 12.3k, 4.56M. */
export function count(value: number | null | undefined): string {
  if (value === null || value === undefined) return "–";
  const size = Math.abs(value);
  if (size < 1000) return String(Math.round(value));
  if (size < 99_950) return `${(value / 1000).toFixed(1)}k`;
  if (size < 999_500) return `${Math.round(value / 1000)}k`;
  if (size < 99_950_000) return `${(value / 1e6).toFixed(1)}M`;
  if (size < 999_500_000) return `${Math.round(value / 1e6)}M`;
  return `${(value / 1e9).toFixed(1)}B`;
}

export function exactCount(value: number | null | undefined): string {
  return value === null || value === undefined ? "" : value.toLocaleString("en-US");
}

export function percent(share: number): string {
  if (!Number.isFinite(share)) return "–";
  const value = share * 100;
  return `${value > 0 && value < 10 ? value.toFixed(1) : Math.round(value)} %`;
}

/** Names of the units of a duration, from seconds to days. */
export type DurationUnits = readonly [seconds: string, minutes: string, hours: string, days: string];
export const ENGLISH_UNITS: DurationUnits = ["s", "min", "h", "d"];

/** 0.4 s, 12 s, 3 min 5 s, 2 h 10 min, 3 d 4 h. */
export function duration(ms: number | null | undefined, units: DurationUnits = ENGLISH_UNITS): string {
  if (ms === null || ms === undefined || Number.isNaN(ms)) return "";
  if (ms < 950) return `${Math.max(0.1, ms / 1000).toFixed(1)} ${units[0]}`;
  const seconds = Math.round(ms / 1000);
  if (seconds < 60) return `${seconds} ${units[0]}`;
  const pair = (unit: 1 | 2 | 3, major: number, minor: number) =>
    minor ? `${major} ${units[unit]} ${minor} ${units[unit - 1]}` : `${major} ${units[unit]}`;
  if (seconds < 3600) return pair(1, Math.floor(seconds / 60), seconds % 60);
  const minutes = Math.floor(seconds / 60);
  if (minutes < 1440) return pair(2, Math.floor(minutes / 60), minutes % 60);
  const hours = Math.floor(minutes / 60);
  return pair(3, Math.floor(hours / 24), hours % 24);
}

export function bytes(size: number): string {
  if (size < 1000) return `${size} B`;
  if (size < 1e6) return `${(size / 1e3).toFixed(size < 1e4 ? 1 : 0)} kB`;
  return `${(size / 1e6).toFixed(1)} MB`;
}

const RELATIVE_UNITS: [Intl.RelativeTimeFormatUnit, number][] = [
  ["day", 86_400],
  ["hour", 3600],
  ["minute", 60],
];

/** "5 minutes ago", "yesterday", and a date once it is a month old. */
export function relativeTime(timestamp: string | null | undefined, language: string, now = Date.now()): string {
  if (!timestamp) return "";
  const time = Date.parse(timestamp);
  if (Number.isNaN(time)) return timestamp;
  const seconds = (time - now) / 1000;
  if (Math.abs(seconds) > 30 * 86_400) return date(timestamp, language, now);
  const format = new Intl.RelativeTimeFormat(language, { numeric: "auto", style: "short" });
  for (const [unit, size] of RELATIVE_UNITS) {
    if (Math.abs(seconds) >= size) return format.format(Math.round(seconds / size), unit);
  }
  return format.format(0, "second");
}

/** A day without its year if that is this year. */
export function date(timestamp: string, language: string, now = Date.now()): string {
  const time = new Date(timestamp);
  if (Number.isNaN(time.getTime())) return timestamp;
  const sameYear = time.getFullYear() === new Date(now).getFullYear();
  return new Intl.DateTimeFormat(language, {
    day: "numeric",
    month: "short",
    ...(sameYear ? {} : { year: "numeric" }),
  }).format(time);
}

export function clock(timestamp: string | null | undefined, language: string): string {
  if (!timestamp) return "";
  const time = new Date(timestamp);
  if (Number.isNaN(time.getTime())) return timestamp;
  return new Intl.DateTimeFormat(language, { hour: "2-digit", minute: "2-digit", hourCycle: "h23" }).format(time);
}

export function exactTime(timestamp: string | null | undefined, language: string): string {
  if (!timestamp) return "";
  const time = new Date(timestamp);
  if (Number.isNaN(time.getTime())) return timestamp;
  return new Intl.DateTimeFormat(language, { dateStyle: "full", timeStyle: "long" }).format(time);
}

/** The last part of a path, for both kinds of separators. */
export function fileName(path: string): string {
  return path.split(/[\\/]/).filter(Boolean).at(-1) ?? path;
}

/** A path relative to the session's folder, or to the home folder. */
export function shortPath(path: string, folder?: string | null): string {
  if (folder && path.startsWith(`${folder}/`)) return path.slice(folder.length + 1);
  return path.replace(/^\/(?:home|Users)\/[^/]+\//, "~/");
}

/** The last part of the folder a project ran in; its encoded name if the folder is not known. */
export function projectName(cwd: string | null | undefined, project?: string | null): string {
  if (cwd) return fileName(cwd);
  return project ? project.replace(/^-/, "").split("-").filter(Boolean).slice(-2).join("-") || project : "–";
}

/** `claude-opus-5-5` → `opus 5.5`. */
export function modelName(model: string): string {
  const parts = /^claude-([a-z]+)-(\d+)-(\d+)$/.exec(model);
  if (parts) return `${parts[1]} ${parts[2]}.${parts[3]}`;
  return model.replace(/^claude-/, "");
}

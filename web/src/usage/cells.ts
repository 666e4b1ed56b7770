import { dayOf } from "./days.ts";

export interface DayCell {
  day: string;
  cost_usd: number;
  messages: number;
}

export interface HourCell {
  /** 0 is Monday. */
  weekday: number;
  hour: number;
  cost_usd: number;
  messages: number;
}

/** Five steps, by the square root: a day of ten times the work is not ten times as dark. */
export function level(value: number, highest: number): number {
  if (value <= 0 || highest <= 0) return 0;
  return Math.min(4, Math.max(1, Math.ceil(Math.sqrt(value / highest) * 4)));
}

/** The weeks of a year, Monday first; days of other years are `null`. */
export function weeksOf(year: number): (string | null)[][] {
  const first = new Date(year, 0, 1);
  const start = new Date(year, 0, 1 - ((first.getDay() + 6) % 7));
  const weeks: (string | null)[][] = [];
  for (let week = 0; week < 54; week += 1) {
    const days = Array.from({ length: 7 }, (_, day) => {
      const time = new Date(start.getFullYear(), start.getMonth(), start.getDate() + week * 7 + day);
      return time.getFullYear() === year ? dayOf(time) : null;
    });
    if (days.some(Boolean)) weeks.push(days);
  }
  return weeks;
}

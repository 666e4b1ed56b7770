// Tool inputs and outputs are any JSON: a transcript may hold anything. These read a field or give nothing.

export type Json = Record<string, unknown>;

export function object(value: unknown): Json {
  return value !== null && typeof value === "object" && !Array.isArray(value) ? (value as Json) : {};
}

export function list(value: unknown): unknown[] {
  return Array.isArray(value) ? value : [];
}

export function string(value: unknown): string | undefined {
  return typeof value === "string" ? value : undefined;
}

export function number(value: unknown): number | undefined {
  return typeof value === "number" ? value : undefined;
}

/** Indented JSON of any value. */
export function pretty(value: unknown): string {
  return typeof value === "string" ? value : (JSON.stringify(value, null, 2) ?? "");
}

/** The text of a tool result: a string, or the text blocks of a list. */
export function resultText(result: unknown): string {
  if (typeof result === "string") return result;
  return list(result)
    .map((block) => string(object(block).text) ?? "")
    .filter(Boolean)
    .join("\n");
}

export interface ImageData {
  mediaType: string;
  data: string;
}

/** Images that a browser draws without running anything. SVG is not among them: it is shown as text. */
export const IMAGE_TYPES = ["image/png", "image/jpeg", "image/gif", "image/webp"];

export function imageOf(source: unknown): ImageData | null {
  const { media_type, data } = object(source);
  if (typeof media_type !== "string" || typeof data !== "string" || !IMAGE_TYPES.includes(media_type)) return null;
  return { mediaType: media_type, data };
}

export function resultImages(result: unknown): ImageData[] {
  return list(result)
    .map((block) => (object(block).type === "image" ? imageOf(object(block).source) : null))
    .filter((image) => image !== null);
}

/** Blocks of a result that are neither text nor a known image. */
export function otherBlocks(result: unknown): unknown[] {
  if (typeof result === "string" || result === undefined || result === null) return [];
  if (!Array.isArray(result)) return [result];
  return result.filter((block) => {
    const { type, source } = object(block);
    return !(type === "text" || (type === "image" && imageOf(source)));
  });
}

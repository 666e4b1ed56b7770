import { IMAGE_TYPES } from "../conversation/tools/values.ts";
import type { ImageUpload } from "./types.ts";

/** The API refuses larger images. */
const MAX_IMAGE_BYTES = 5_000_000;

export const isImage = (file: File) => IMAGE_TYPES.includes(file.type);
export const isTooLarge = (file: File) => file.size > MAX_IMAGE_BYTES;

export async function readImage(file: File): Promise<ImageUpload> {
  const bytes = new Uint8Array(await file.arrayBuffer());
  const pieces: string[] = [];
  for (let at = 0; at < bytes.length; at += 32_768)
    pieces.push(String.fromCharCode(...bytes.subarray(at, at + 32_768)));
  return { media_type: file.type, data: btoa(pieces.join("")) };
}

import type { LanguageRegistration } from "shiki/core";

type Loader = () => Promise<{ default: LanguageRegistration[] }>;

// One chunk each, loaded when the first block of that language is on screen.
const LOADERS: Record<string, Loader> = {
  bash: () => import("shiki/langs/bash.mjs"),
  c: () => import("shiki/langs/c.mjs"),
  cpp: () => import("shiki/langs/cpp.mjs"),
  csharp: () => import("shiki/langs/csharp.mjs"),
  css: () => import("shiki/langs/css.mjs"),
  diff: () => import("shiki/langs/diff.mjs"),
  docker: () => import("shiki/langs/docker.mjs"),
  go: () => import("shiki/langs/go.mjs"),
  html: () => import("shiki/langs/html.mjs"),
  java: () => import("shiki/langs/java.mjs"),
  javascript: () => import("shiki/langs/javascript.mjs"),
  json: () => import("shiki/langs/json.mjs"),
  jsx: () => import("shiki/langs/jsx.mjs"),
  kotlin: () => import("shiki/langs/kotlin.mjs"),
  lua: () => import("shiki/langs/lua.mjs"),
  make: () => import("shiki/langs/make.mjs"),
  markdown: () => import("shiki/langs/markdown.mjs"),
  php: () => import("shiki/langs/php.mjs"),
  python: () => import("shiki/langs/python.mjs"),
  ruby: () => import("shiki/langs/ruby.mjs"),
  rust: () => import("shiki/langs/rust.mjs"),
  scss: () => import("shiki/langs/scss.mjs"),
  sql: () => import("shiki/langs/sql.mjs"),
  svelte: () => import("shiki/langs/svelte.mjs"),
  swift: () => import("shiki/langs/swift.mjs"),
  toml: () => import("shiki/langs/toml.mjs"),
  tsx: () => import("shiki/langs/tsx.mjs"),
  typescript: () => import("shiki/langs/typescript.mjs"),
  vue: () => import("shiki/langs/vue.mjs"),
  xml: () => import("shiki/langs/xml.mjs"),
  yaml: () => import("shiki/langs/yaml.mjs"),
  zig: () => import("shiki/langs/zig.mjs"),
};

const ALIASES: Record<string, string> = {
  "c++": "cpp",
  cc: "cpp",
  cs: "csharp",
  dockerfile: "docker",
  h: "c",
  hpp: "cpp",
  htm: "html",
  ipynb: "json",
  js: "javascript",
  jsonl: "json",
  kt: "kotlin",
  kts: "kotlin",
  makefile: "make",
  md: "markdown",
  mjs: "javascript",
  py: "python",
  rb: "ruby",
  rs: "rust",
  sh: "bash",
  shell: "bash",
  svg: "xml",
  ts: "typescript",
  yml: "yaml",
  zsh: "bash",
};

/** The known language of a Markdown info string or file extension. */
export function languageOf(name: string): string | null {
  const key = name.toLowerCase();
  const language = ALIASES[key] ?? key;
  return language in LOADERS ? language : null;
}

/** The language of a file by its name. */
export function languageOfPath(path: string): string | null {
  const name = path.split(/[\\/]/).at(-1) ?? "";
  return languageOf(name.includes(".") ? (name.split(".").at(-1) ?? "") : name);
}

export function loadLanguage(language: string): Promise<{ default: LanguageRegistration[] }> | null {
  return LOADERS[language]?.() ?? null;
}

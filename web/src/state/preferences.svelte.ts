import type { Language } from "../i18n/texts.ts";

export type Theme = "system" | "light" | "dark";

const STORAGE_KEY = "quipu.preferences";

interface Stored {
  theme?: Theme;
  language?: Language | "system";
  leftRail?: boolean;
  rightRail?: boolean;
}

function stored(): Stored {
  try {
    return JSON.parse(localStorage.getItem(STORAGE_KEY) ?? "{}") as Stored;
  } catch {
    return {};
  }
}

/** What the user chose for this browser. Language and theme start with the values of config.toml. */
class Preferences {
  #stored = $state<Stored>(stored());
  #systemDark = $state(matchMedia("(prefers-color-scheme: dark)").matches);
  /** Width below which the rails become sheets. */
  isNarrow = $state(matchMedia("(max-width: 900px)").matches);

  constructor() {
    matchMedia("(prefers-color-scheme: dark)").addEventListener("change", (event) => {
      this.#systemDark = event.matches;
    });
    matchMedia("(max-width: 900px)").addEventListener("change", (event) => {
      this.isNarrow = event.matches;
    });
  }

  get themeChoice(): Theme {
    return this.#stored.theme ?? "system";
  }
  get theme(): "light" | "dark" {
    if (this.themeChoice !== "system") return this.themeChoice;
    return this.#systemDark ? "dark" : "light";
  }
  get languageChoice(): Language | "system" {
    return this.#stored.language ?? "system";
  }
  get language(): Language {
    if (this.languageChoice !== "system") return this.languageChoice;
    return navigator.language.toLowerCase().startsWith("zh") ? "zh" : "en";
  }
  get leftRail(): boolean {
    return this.#stored.leftRail ?? true;
  }
  get rightRail(): boolean {
    return this.#stored.rightRail ?? true;
  }

  set(changes: Stored) {
    this.#stored = { ...this.#stored, ...changes };
    localStorage.setItem(STORAGE_KEY, JSON.stringify(this.#stored));
  }

  /** Takes values of config.toml for what was not chosen in this browser. */
  adopt(values: { theme?: string | null; language?: string | null }) {
    if (!this.#stored.theme && (values.theme === "light" || values.theme === "dark")) this.#stored.theme = values.theme;
    if (!this.#stored.language && (values.language === "en" || values.language === "zh"))
      this.#stored.language = values.language;
  }
}

export const preferences = new Preferences();

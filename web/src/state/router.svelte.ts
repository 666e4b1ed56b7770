export type View = "home" | "chat" | "sessions" | "session" | "search" | "usage" | "settings" | "missing";

export interface Route {
  view: View;
  /** Session id of the view `session`. */
  id: string;
  query: URLSearchParams;
}

/** The view of an address; deep links are `/s/SESSION?line=N`. */
export function parseRoute(path: string, search: string): Route {
  const query = new URLSearchParams(search);
  const parts = path.split("/").filter(Boolean);
  const [first, second] = parts;
  if (!first) return { view: "home", id: "", query };
  if (first === "s" && second) return { view: "session", id: decodeURIComponent(second), query };
  const views = ["chat", "sessions", "search", "usage", "settings"] as const;
  const view = views.find((name) => name === first);
  if (view && parts.length === 1) return { view, id: "", query };
  return { view: "missing", id: "", query };
}

class Router {
  route = $state.raw<Route>(parseRoute(location.pathname, location.search));

  start(): () => void {
    const pop = () => this.read();
    const click = (event: MouseEvent) => this.followLink(event);
    addEventListener("popstate", pop);
    addEventListener("click", click);
    return () => {
      removeEventListener("popstate", pop);
      removeEventListener("click", click);
    };
  }

  private read() {
    this.route = parseRoute(location.pathname, location.search);
  }

  go(address: string, options: { replace?: boolean } = {}) {
    if (options.replace) history.replaceState(null, "", address);
    else history.pushState(null, "", address);
    this.read();
  }

  /** Changes parameters of the address and keeps the view; empty values are removed. */
  setQuery(changes: Record<string, string | number | null>, options: { replace?: boolean } = { replace: true }) {
    const query = new URLSearchParams(location.search);
    for (const [name, value] of Object.entries(changes)) {
      if (value === null || value === "") query.delete(name);
      else query.set(name, String(value));
    }
    const text = query.toString();
    this.go(location.pathname + (text ? `?${text}` : ""), options);
  }

  /** Plain clicks on links of the page change the view without loading it again. */
  private followLink(event: MouseEvent) {
    if (
      event.defaultPrevented ||
      event.button !== 0 ||
      event.metaKey ||
      event.ctrlKey ||
      event.shiftKey ||
      event.altKey
    )
      return;
    const link = event.target instanceof Element ? event.target.closest("a") : null;
    if (!link?.href || link.target || link.download || link.origin !== location.origin) return;
    event.preventDefault();
    this.go(link.pathname + link.search);
  }
}

export const router = new Router();

/** Address of a session, and of one of its items. */
export function sessionAddress(id: string, options: { tab?: string; line?: number; agent?: string } = {}): string {
  const query = new URLSearchParams();
  for (const [name, value] of Object.entries(options)) if (value !== undefined) query.set(name, String(value));
  const text = query.toString();
  return `/s/${encodeURIComponent(id)}${text ? `?${text}` : ""}`;
}

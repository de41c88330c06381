// Addresses within the page: #/ for all feeds, #/feeds/NAME/PART?search=… for one.

const PARTS = ["overview", "tables", "dead-letters", "locks", "comparisons", "history", "options"];

/** Return {feed, part, query} of the present address; `feed` is empty for the list of all. */
export function route() {
  const [where, query = ""] = location.hash.replace(/^#\/?/, "").split("?");
  const [kind, name = "", part = "overview"] = where.split("/");
  return {
    feed: kind === "feeds" ? decoded(name) : "",
    part: PARTS.includes(part) ? part : "overview",
    query: Object.fromEntries(new URLSearchParams(kind === "feeds" ? query : where ? "" : query)),
  };
}

function decoded(name) {
  try {
    return decodeURIComponent(name);
  } catch {
    return name;
  }
}

/** Return the address of a feed, a part of it, or (without a name) of the list. */
export function link(feed = "", part = "overview", query = {}) {
  const entries = Object.entries(query).filter(([, value]) => value !== "" && value !== null && value !== undefined);
  const shown = entries.length ? `?${new URLSearchParams(entries)}` : "";
  if (!feed) return `#/${shown}`;
  return `#/feeds/${encodeURIComponent(feed)}${part === "overview" ? "" : `/${part}`}${shown}`;
}

/** Change the query of the present address, without a step in the browser's history. */
export function requery(query) {
  const { feed, part, query: before } = route();
  history.replaceState(null, "", link(feed, part, { ...before, ...query }));
  dispatchEvent(new HashChangeEvent("hashchange"));
}

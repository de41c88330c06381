// States, errors and operations of a feed.

import { path, withQuery } from "./api.js";
import { h } from "./dom.js";
import { fetched } from "./fetched.js";
import { chips, missing, section } from "./parts.js";
import { requery } from "./route.js";
import { when } from "./time.js";

const LIMIT = 500;
const KINDS = { state: "State", error: "Error", operation: "Operation" };

export function historyPart({ feed, query }) {
  const { kind = "" } = query;
  const answer = fetched("history", withQuery(path("feeds", feed.name, "history"), { limit: LIMIT }), 5);
  const shown = answer.data?.history.filter((one) => !kind || one.kind === kind) ?? [];
  const choices = [
    ["", "All"],
    ["error", "Errors"],
    ["operation", "Operations"],
    ["state", "States"],
  ];
  return h(
    "div",
    { key: "history", class: "part" },
    section(
      "history",
      "History",
      chips("Show", choices, kind, (name) => requery({ kind: name })),
      missing(answer),
      answer.data && shown.length === 0 && h("p", { key: "none", class: "calm" }, "There is nothing yet."),
      shown.length > 0 && entries(shown),
    ),
  );
}

/** Return entries of a history as a list. */
export function entries(history) {
  const made = history.map((one) =>
    h(
      "li",
      { key: `${one.time} ${one.text}`, class: one.kind },
      when(one.time),
      h("span", { class: "kind" }, KINDS[one.kind]),
      h("span", { class: "text" }, one.text, one.by && h("small", null, ` by ${one.by}`)),
    ),
  );
  return h("ol", { key: "entries", class: "entries" }, made);
}

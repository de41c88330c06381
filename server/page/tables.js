// The tables of a feed: searched and sorted by the server, a page at a time.

import { button, tableAction } from "./actions.js";
import { path, withQuery } from "./api.js";
import { h } from "./dom.js";
import { fetched } from "./fetched.js";
import { count, counted, percent, seconds } from "./format.js";
import { badge, chips, missing, row, searchField, section, table } from "./parts.js";
import { requery } from "./route.js";
import { when } from "./time.js";

const LIMIT = 100;
const STATES = {
  failed: { word: "Failed", tone: "alarm", verbs: ["resume"] },
  loading: { word: "Loading", tone: "busy", verbs: ["pause"] },
  paused: { word: "Paused", tone: "rest", verbs: ["resume"] },
  following: { word: "Following", tone: "well", verbs: ["pause", "reload"] },
  removed: { word: "Removed", tone: "rest", verbs: [] },
};
const VERBS = { pause: "Pause", resume: "Resume", reload: "Reload" };
const COLUMNS = [
  { title: "Table", class: "name", by: "name" },
  { title: "State", class: "state", by: "state" },
  { title: "Lag", class: "number", by: "lag" },
  { title: "Rows", class: "number", by: "rows" },
  { title: "Since", class: "since", by: "since" },
  { title: "Actions", class: "verbs" },
];

export function tablesPart({ feed, query }) {
  const { search = "", state = "", sort = "name", order = "asc", offset = "0" } = query;
  const asked = { search, state, sort, order, offset, limit: LIMIT };
  const answer = fetched("tables", withQuery(path("feeds", feed.name, "tables"), asked), 5);
  const { data, isStale } = answer;
  const numbers = data?.states ?? {};
  const all = Object.values(numbers).reduce((sum, number) => sum + number, 0);
  const choices = [
    ["", `All ${count(all)}`],
    ...Object.entries(STATES)
      .filter(([name]) => numbers[name] || name === state)
      .map(([name, { word }]) => [name, `${word} ${count(numbers[name] ?? 0)}`]),
  ];
  const columns = COLUMNS.map((column) => ({ ...column, ...sorting(column, sort, order) }));
  const line = (one) => tableRow(feed.name, one, columns);
  return h(
    "div",
    { key: "tables", class: "part" },
    section(
      "tables",
      "Tables",
      h(
        "div",
        { key: "choice", class: "choice" },
        searchField("Search tables", search, (text) => requery({ search: text, offset: "" })),
        data && chips("Show", choices, state, (name) => requery({ state: name, offset: "" })),
      ),
      missing(answer),
      data && h("p", { key: "found", role: "status", class: "found" }, isStale ? "Loading…" : found(data, all, Number(offset))),
      data?.tables.length > 0 && table("Tables", columns, data.tables.map(line), { isBusy: isStale }),
      data && data.total > LIMIT && pages(data.total, Number(offset)),
    ),
  );
}

function found({ total, tables }, all, offset) {
  if (!total) return all ? "No table matches." : "The feed follows no table yet.";
  const which = total > LIMIT ? `${count(offset + 1)} to ${count(offset + tables.length)} of ` : "";
  return `${which}${counted(total, "table")}`;
}

function sorting({ title, by }, sort, order) {
  if (!by) return {};
  const isBy = by === sort;
  // Names begin with the first, numbers with the largest.
  const next = isBy ? (order === "asc" ? "desc" : "asc") : by === "name" || by === "state" ? "asc" : "desc";
  const sign = isBy ? (order === "asc" ? " ↑" : " ↓") : "";
  const onclick = () => requery({ sort: by, order: next, offset: "" });
  return {
    head: h("button", { type: "button", class: "sort", onclick }, title, h("span", { "aria-hidden": "true" }, sign)),
    sort: isBy ? (order === "asc" ? "ascending" : "descending") : "none",
  };
}

function tableRow(feed, one, columns) {
  const state = STATES[one.state];
  const status = [badge(state), progressOf(one), one.error && h("p", { class: "why" }, one.error)];
  const operations = `${count(one.inserts)} inserts, ${count(one.updates)} updates, ${count(one.deletes)} deletes`;
  const rows = h("span", { title: operations }, count(one.inserts + one.updates + one.deletes));
  const verbs = state.verbs.map((verb) =>
    button(`${verb} ${one.name}`, VERBS[verb], tableAction(feed, one.name, verb), {
      label: `${VERBS[verb]} ${one.name}`,
    }),
  );
  const cells = [one.name, status, seconds(one.lag_seconds), rows, when(one.since), verbs];
  return row(one.name, columns, cells, state.tone === "alarm" ? "alarm" : null);
}

function progressOf({ state, rows_loaded: rows, rows_estimated: estimated }) {
  if (state !== "loading") return null;
  if (!estimated) return ` ${counted(rows, "row")} so far`;
  return ` ${percent((100 * rows) / estimated)}: ${count(rows)} of about ${counted(estimated, "row")}`;
}

function pages(total, offset) {
  const to = (place, text, isPossible) => {
    const onclick = () => isPossible && requery({ offset: String(place) });
    return h("button", { type: "button", key: text, onclick, "aria-disabled": !isPossible && "true" }, text);
  };
  return h(
    "nav",
    { key: "pages", "aria-label": "Pages of tables", class: "buttons" },
    to(0, "First", offset > 0),
    to(Math.max(0, offset - LIMIT), "Previous", offset > 0),
    to(offset + LIMIT, "Next", offset + LIMIT < total),
    to(Math.floor((total - 1) / LIMIT) * LIMIT, "Last", offset + LIMIT < total),
  );
}

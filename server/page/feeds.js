// The list of all feeds, those that need a person first.

import { byUrgency } from "./condition.js";
import { h, memo } from "./dom.js";
import { count, counted, seconds } from "./format.js";
import { address, badge, chips, row, searchField, table } from "./parts.js";
import { link, requery } from "./route.js";
import { state } from "./state.js";
import { since } from "./time.js";

/** Feeds that are shown at first: a person looks at those that are on top. */
const FIRST = 200;
const COLUMNS = [
  { title: "Feed", class: "name" },
  { title: "State", class: "state" },
  { title: "Lag", class: "number" },
  { title: "Rows/s", class: "number" },
  { title: "From and to", class: "path" },
];

export function feedsView({ query }) {
  const { search = "", show = "", all: showsAll = "" } = query;
  const all = byUrgency(state.feeds ?? []);
  const words = new Map();
  for (const { condition } of all) words.set(condition.word, (words.get(condition.word) ?? 0) + 1);
  const choices = [
    ["", `All ${count(all.length)}`],
    ...[...words].map(([word, number]) => [word, `${word} ${count(number)}`]),
  ];
  const found = all.filter(({ feed, condition }) => (!show || condition.word === show) && matches(feed, search));
  const shown = showsAll ? found : found.slice(0, FIRST);
  return [
    h("h1", { key: "title", tabindex: -1 }, summary(all)),
    all.length === 0 && none(),
    all.length > 1 &&
      h(
        "div",
        { key: "choice", class: "choice" },
        searchField("Search feeds", search, (text) => requery({ search: text })),
        chips("Show", choices, show, (word) => requery({ show: word })),
      ),
    found.length > 0 && h("div", { key: "feeds", class: "feeds" }, table("Feeds", COLUMNS, shown.map(line))),
    shown.length < found.length &&
      h(
        "div",
        { key: "more", class: "buttons" },
        h("button", { type: "button", onclick: () => requery({ all: "1" }) }, `Show all ${count(found.length)}`),
      ),
    all.length > 0 && found.length === 0 && h("p", { key: "nothing", class: "calm" }, "No feed matches."),
  ];
}

function matches(feed, search) {
  const text = search.toLowerCase();
  return [feed.name, feed.source, ...feed.sinks.map((sink) => sink.target)].some((one) =>
    one.toLowerCase().includes(text),
  );
}

function summary(all) {
  const urgent = all.filter(({ condition }) => condition.needs).length;
  if (all.length === 0) return "No feeds";
  if (all.length === 1) return urgent ? "The feed needs you" : "The feed is well";
  if (urgent) return `${count(urgent)} of ${counted(all.length, "feed")} ${urgent === 1 ? "needs" : "need"} you`;
  return `All ${count(all.length)} feeds are well`;
}

function none() {
  const text = "Put a feed file NAME.toml into the server's directory and start it again, or POST one to api/v1/feeds.";
  return h("p", { key: "none", class: "calm" }, text);
}

function line({ feed, condition }) {
  return memo(feed.name, JSON.stringify([feed, condition.name]), () => {
    const name = h("a", { href: link(feed.name) }, feed.name);
    const status = [
      badge(condition),
      " ",
      since(feed, condition),
      condition.why && h("p", { class: "why" }, condition.why),
    ];
    const paths = [feed.source, ...feed.sinks.map((sink) => `→ ${sink.target}`)].map((text) =>
      h("div", null, address(text)),
    );
    const cells = [name, status, seconds(feed.lag), count(feed.rows_per_second), paths];
    return row(undefined, COLUMNS, cells, condition.needs ? condition.tone : null);
  });
}

// One feed: its state, what can be done with it, and its parts.

import { button, pauseFeed, removeFeed, resumeFeed, startComparison } from "./actions.js";
import { comparisonsPart } from "./comparisons.js";
import { conditionOf } from "./condition.js";
import { h } from "./dom.js";
import { count } from "./format.js";
import { historyPart } from "./history.js";
import { lettersPart } from "./letters.js";
import { locksPart } from "./locks.js";
import { optionsPart } from "./options.js";
import { overviewPart } from "./overview.js";
import { badge } from "./parts.js";
import { link } from "./route.js";
import { state } from "./state.js";
import { tablesPart } from "./tables.js";
import { since } from "./time.js";

const VIEWS = {
  overview: overviewPart,
  tables: tablesPart,
  "dead-letters": lettersPart,
  locks: locksPart,
  comparisons: comparisonsPart,
  history: historyPart,
  options: optionsPart,
};

export function feedView({ feed: name, part, query }) {
  const { detail } = state;
  const summary = detail?.feed ?? state.feeds?.find((feed) => feed.name === name);
  if (state.isGone || !summary) return gone(name);
  const condition = conditionOf(summary);
  return [
    back(),
    h(
      "div",
      { key: "head", class: "head" },
      h("h1", { tabindex: -1 }, name),
      h("p", { role: "status" }, badge(condition)),
      h("p", null, since(summary, condition)),
      detail && verbs(summary, detail.status),
    ),
    detail && parts(name, part, detail.status),
    detail ? VIEWS[part]({ ...detail, condition, query }) : h("p", { key: "waiting", class: "calm" }, "Loading …"),
  ];
}

function back() {
  return h("nav", { key: "back", "aria-label": "Way back" }, h("a", { href: link() }, "← All feeds"));
}

function gone(name) {
  return [
    back(),
    h("h1", { key: "title", tabindex: -1 }, `No feed ${name}`),
    h("p", { key: "gone", class: "calm" }, "This server has no feed of this name. It may have been removed."),
  ];
}

function verbs(feed, status) {
  const { name, managed } = feed;
  const rests = ["failed", "stopped", "finished"].includes(feed.state);
  return h(
    "div",
    { class: "verbs" },
    managed && rests && button("feed", "Resume", resumeFeed(name, feed.state === "failed"), { kind: "primary" }),
    managed && !rests && button("feed", "Pause", pauseFeed(name, status)),
    button("compare", "Compare", startComparison(name, status.sinks)),
    managed && button("remove", "Remove", removeFeed(name), { kind: "quiet" }),
  );
}

function parts(name, part, status) {
  const letters = status.sinks.reduce((sum, sink) => sum + sink.dead_letters, 0);
  const titles = {
    overview: "Overview",
    tables: "Tables",
    "dead-letters": letters ? `Dead letters ${count(letters)}` : "Dead letters",
    locks: status.locks.length ? `Locks ${count(status.locks.length)}` : "Locks",
    comparisons: "Comparisons",
    history: "History",
    options: "Options",
  };
  const links = Object.entries(titles).map(([one, title]) =>
    h("li", { key: one }, h("a", { href: link(name, one), "aria-current": one === part && "page" }, title)),
  );
  return h("nav", { key: "parts", class: "parts", "aria-label": `Parts of ${name}` }, h("ul", null, links));
}

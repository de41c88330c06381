// What a feed does at present: what is wrong and what to do, its stages, its lag, and what happened last.

import { button, skipStatement } from "./actions.js";
import { path, withQuery } from "./api.js";
import { h } from "./dom.js";
import { fetched } from "./fetched.js";
import { count, counted, longer, percent } from "./format.js";
import { entries } from "./history.js";
import { lagSection } from "./lag.js";
import { secondsLeft } from "./pace.js";
import { progress, section } from "./parts.js";
import { link } from "./route.js";
import { picture } from "./stages.js";
import { verificationSection } from "./verification.js";

const LAST = 5;
/** Hours for which the source still keeps the log, below which the page warns. */
const FEW_HOURS = 24;

export function overviewPart({ feed, status, condition }) {
  const waits = fetched("waits", path("feeds", feed.name, "waits"), 2).data;
  return h(
    "div",
    { key: "overview", class: "part" },
    diagnosis(feed, status, condition, waits?.explanation ?? []),
    loading(status),
    section("stages", "Stages", picture(feed, status, waits)),
    lagSection(status),
    verificationSection(status),
    recent(feed.name),
  );
}

// --- what is wrong, and what to do

function diagnosis(feed, status, condition, explanation) {
  return h(
    "section",
    { key: "diagnosis", class: `diagnosis ${condition.tone}`, "aria-label": "Diagnosis" },
    h("p", { class: "cause" }, causeOf(condition, explanation)),
    fewHours(status),
    remedies(feed, status),
  );
}

/** Return the cause with what to do, as the explanation begins with it; the stages show all waits. */
function causeOf(condition, [head = "", first = ""]) {
  const cause = /^feed [\w-]+: \w+: (.*)$/s.exec(head)?.[1];
  return cause ?? (condition.why || (first && first !== "nothing waits" ? first : "Nothing waits."));
}

function fewHours({ log_hours_left: hours }) {
  if (hours === null || hours === undefined || hours >= FEW_HOURS) return null;
  return h(
    "p",
    null,
    `The source discards its log after the checkpoint in ${longer(hours * 3600)}, at its present rate.`,
  );
}

function remedies(feed, status) {
  const position = /--skip-ddl ([^\s;)]+)/.exec(feed.detail)?.[1];
  const letters = status.sinks.reduce((sum, sink) => sum + sink.dead_letters, 0);
  const failed = feed.table_states.failed ?? 0;
  const { locks } = status;
  const made = [
    feed.managed && position && button("skip", "Skip this statement", skipStatement(feed.name, position)),
    failed > 0 && go(`Show ${counted(failed, "failed table")}`, link(feed.name, "tables", { state: "failed" })),
    letters > 0 && go(`Show ${counted(letters, "dead letter")}`, link(feed.name, "dead-letters")),
    locks.length > 0 && go(`Show ${counted(locks.length, "lock")}`, link(feed.name, "locks")),
  ].filter(Boolean);
  return made.length > 0 && h("div", { class: "buttons" }, made);
}

function go(text, href) {
  return h("a", { key: href, class: "button", href }, text);
}

// --- loads

function loading({ snapshot, backfill }) {
  if (!snapshot?.table && !backfill) return null;
  return section("loading", "Loading", snapshot?.table && ofSnapshot(snapshot), backfill && ofBackfill(backfill));
}

function ofSnapshot(snapshot) {
  const part = snapshot.rows_estimated ? Math.min(100, (100 * snapshot.rows) / snapshot.rows_estimated) : null;
  const left = secondsLeft(snapshot);
  const number = Math.min(snapshot.tables_done + 1, snapshot.tables);
  const sentence = [
    `Table ${snapshot.table}, ${count(number)} of ${count(snapshot.tables)}: `,
    ofRows(snapshot),
    part === null ? "" : `, ${percent(part)}`,
    left === null ? "" : `, about ${longer(left)} left`,
  ].join("");
  return progress(`Load of ${snapshot.table}`, part, sentence);
}

function ofBackfill(backfill) {
  const part = backfill.chunks_in_all ? (100 * backfill.chunks) / backfill.chunks_in_all : null;
  const left = backfill.seconds_left === null ? "" : `, about ${longer(backfill.seconds_left)} left`;
  const chunks = `${count(backfill.chunks)} of ${counted(backfill.chunks_in_all, "chunk")}`;
  return progress("Backfill", part, `Backfill, ${backfill.stage}: ${chunks}, ${ofRows(backfill)}${left}`);
}

function ofRows({ rows, rows_estimated: estimated }) {
  return estimated ? `${count(rows)} of about ${counted(estimated, "row")}` : counted(rows, "row");
}

// --- what happened last

function recent(name) {
  const { data } = fetched("recent", withQuery(path("feeds", name, "history"), { limit: LAST }), 5);
  if (!data?.history.length) return null;
  return section(
    "recent",
    "Last events",
    entries(data.history),
    h("p", null, h("a", { href: link(name, "history") }, "All events")),
  );
}

// Comparisons of a feed's source and target.

import { button, startComparison, stopComparison } from "./actions.js";
import { path } from "./api.js";
import { h } from "./dom.js";
import { fetched } from "./fetched.js";
import { count, counted, longer, percent, seconds } from "./format.js";
import { badge, missing, progress, row, section, table } from "./parts.js";
import { when } from "./time.js";

const COLUMNS = [
  { title: "Row", class: "name" },
  { title: "Difference", class: "state" },
  { title: "In the source", class: "reason" },
  { title: "In the target", class: "reason" },
];
const KINDS = { missing: "missing in the target", extra: "only in the target", changed: "other values" };
/** Differences that are shown; the command line prints all. */
const SHOWN = 100;

export function comparisonsPart({ feed, status }) {
  const where = path("feeds", feed.name, "diff");
  const answer = fetched("comparisons", where, 1);
  const jobs = answer.data?.jobs ?? [];
  const latest = jobs[0];
  const found = latest?.differences
    ? fetched("comparison", `${where}/${encodeURIComponent(latest.job)}`, 2).data
    : null;
  return h(
    "div",
    { key: "comparisons", class: "part" },
    section(
      "comparisons",
      "Comparisons",
      h(
        "div",
        { key: "start", class: "buttons" },
        button("compare", "Compare …", startComparison(feed.name, status.sinks)),
      ),
      missing(answer),
      answer.data && !latest && h("p", { key: "none", class: "calm" }, "None since the server started."),
      jobs.map((job) => ofJob(feed.name, job, job === latest ? found : null)),
    ),
  );
}

function conditionOf({ state, is_equal: isEqual, differences }) {
  if (state === "done" && isEqual) return { word: "Equal", tone: "well" };
  if (state === "done") return { word: differences ? `${count(differences)} different` : "Not equal", tone: "alarm" };
  if (state === "failed") return { word: "Failed", tone: "alarm" };
  if (state === "stopped") return { word: "Stopped", tone: "rest" };
  return { word: state === "waiting" ? "Waiting" : "Running", tone: "busy" };
}

function ofJob(feed, job, found) {
  const isRunning = job.state === "running" || job.state === "waiting";
  return h(
    "article",
    { key: job.job, class: "card", "aria-label": `Comparison ${job.job}` },
    h("h3", null, `Comparison ${job.job} `, badge(conditionOf(job))),
    h(
      "p",
      null,
      "Started ",
      when(job.started),
      job.request.tables.length > 0 && ` of ${job.request.tables.join(", ")}`,
    ),
    isRunning && running(job),
    !isRunning && h("p", null, `${counted(job.tables_done, "table")}, took ${seconds(job.ended - job.started)}.`),
    job.error && h("p", { class: "problem" }, job.error),
    job.warning && h("p", { class: "why" }, job.warning),
    isRunning && job.differences > 0 && h("p", null, `${counted(job.differences, "difference")} so far`),
    found && results(found),
    isRunning && h("div", { class: "buttons" }, button(`stop ${job.job}`, "Stop", stopComparison(feed, job.job))),
  );
}

function running(job) {
  const left = job.seconds_left === null ? "" : `, about ${longer(job.seconds_left)} left`;
  const rows = job.rows_estimated
    ? `${count(job.rows)} of about ${counted(job.rows_estimated, "row")}`
    : counted(job.rows, "row");
  const at = job.table ? `table ${job.table}, ${rows}; ` : "";
  const tables = `${count(job.tables_done)} of ${counted(job.tables_in_all, "table")}`;
  return progress(
    `Comparison ${job.job}`,
    job.tables_in_all ? job.percent : null,
    `${at}${tables}, ${percent(job.percent)}${left}`,
  );
}

function results(job) {
  const odd = job.results.filter((one) => one.detail && one.state !== "compared");
  return [
    odd.length > 0 &&
      h(
        "ul",
        null,
        odd.map((one) => h("li", null, `${one.table}: ${one.detail}`)),
      ),
    job.found.length > 0 && table("Differences", COLUMNS, job.found.slice(0, SHOWN).map(ofDifference)),
    job.differences > SHOWN &&
      h("p", null, `The first ${count(SHOWN)} of ${count(job.differences)}; tidemill diff prints all.`),
  ];
}

function ofDifference(one, index) {
  const times = one.count > 1 ? `, ${count(one.count)} times` : "";
  const late = one.settled ? "" : "; the target may only be late";
  const values = (row_) => row_ && h("code", null, JSON.stringify(row_));
  const key = `${one.table} ${JSON.stringify(one.key)}`;
  const kind = `${KINDS[one.kind]}${times}${late}`;
  return row(index, COLUMNS, [key, kind, values(one.source), values(one.target)]);
}

// What the feed's verification has compared of each target, and what differs.

import { h } from "./dom.js";
import { counted, percent } from "./format.js";
import { badge, progress, section } from "./parts.js";
import { when } from "./time.js";

const STATES = {
  comparing: { word: "Comparing", tone: "busy" },
  waiting: { word: "Waiting", tone: "rest" },
  paused: { word: "Paused", tone: "warning" },
};

export function verificationSection({ verify = [] }) {
  return verify.length > 0 && section("verification", "Verification", verify.map(ofSink));
}

function ofSink(one) {
  const judged = one.diverged ? { word: "Differs", tone: "alarm" } : STATES[one.state];
  return h(
    "article",
    { key: one.sink, class: "card", "aria-label": `Verification of sink ${one.sink}` },
    h("h3", null, `Sink ${one.sink} `, badge(judged)),
    one.detail && h("p", { class: "problem" }, one.detail),
    one.since !== null && [
      progress(`Verification of sink ${one.sink}`, one.percent, sentence(one)),
      h("p", null, "Since ", when(one.since)),
    ],
    one.whole_ended !== null && h("p", null, "Last whole pass ended ", when(one.whole_ended)),
    one.repaired > 0 && h("p", null, `${counted(one.repaired, "row")} repaired`),
    one.divergences.map(ofTable),
  );
}

function sentence(one) {
  const at = one.table ? `, now table ${one.table}` : "";
  return `${counted(one.rows, "row")} compared, ${percent(one.percent)}${at}`;
}

function ofTable(one) {
  const rows = one.missing + one.extra + one.changed;
  const keys = one.first && (one.first === one.last ? `, ${one.first}` : `, ${one.first} to ${one.last}`);
  const kinds = `${one.missing} missing, ${one.extra} only in the target, ${one.changed} changed`;
  const said = [rows > 0 && `${counted(rows, "row")} (${kinds}${keys})`, one.detail].filter(Boolean).join("; ");
  return h(
    "div",
    { key: one.table },
    h("p", null, `${one.table}: ${said}, found `, when(one.found)),
    one.rows.length > 0 &&
      h(
        "ul",
        null,
        one.rows.map((line) => h("li", null, h("code", null, line))),
      ),
  );
}

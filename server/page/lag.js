// The lag of each sink, divided by the stages in which its oldest change has been.

import { h } from "./dom.js";
import { seconds } from "./format.js";
import { row, section, table } from "./parts.js";

const STAGES = [
  ["commit_to_received", "Commit → received"],
  ["received_to_resolved", "→ resolved"],
  ["resolved_to_written", "→ written"],
  ["written_to_durable", "→ durable"],
];
const COLUMNS = [
  { title: "Sink", class: "name" },
  ...STAGES.map(([name, title]) => ({ title, class: `number ${name}` })),
  { title: "Total", class: "number" },
];

export function lagSection({ sinks }) {
  const largest = Math.max(...sinks.map(({ lag }) => lag.total ?? 0), 1);
  const rows = sinks.map((sink) => {
    const parts = STAGES.map(([name]) => seconds(sink.lag[name]));
    const name = [sink.name, bar(sink, largest)];
    return row(sink.name, COLUMNS, [name, ...parts, seconds(sink.lag.total)]);
  });
  return section("lag", "Lag", table("Lag by stage", COLUMNS, rows));
}

/** Return a bar of a sink's lag; the numbers beside it say the same. */
function bar(sink, largest) {
  const parts = STAGES.map(([name]) =>
    h("span", { key: name, class: `of ${name}`, style: { width: `${(100 * (sink.lag[name] ?? 0)) / largest}%` } }),
  );
  return h("div", { class: "bar", "aria-hidden": "true" }, parts);
}

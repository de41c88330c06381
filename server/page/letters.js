// Changes that the targets of a feed rejected.

import { button, discardLetters, retryLetters } from "./actions.js";
import { path, withQuery } from "./api.js";
import { h } from "./dom.js";
import { fetched } from "./fetched.js";
import { count, counted } from "./format.js";
import { missing, row, section, table } from "./parts.js";
import { when } from "./time.js";

const LIMIT = 100;
const COLUMNS = [
  { title: "Row", class: "name" },
  { title: "Change", class: "state" },
  { title: "Reason", class: "reason" },
  { title: "Rejected", class: "since" },
  { title: "Actions", class: "verbs" },
];

export function lettersPart({ feed, status }) {
  // Asking opens a connection to each target: only when their number may have changed.
  const noted = status.sinks.reduce((sum, sink) => sum + sink.dead_letters, 0);
  const answer = fetched(
    "letters",
    withQuery(path("feeds", feed.name, "dead-letters"), { limit: LIMIT }),
    noted ? 30 : 0,
  );
  const { data } = answer;
  return h(
    "div",
    { key: "letters", class: "part" },
    section(
      "letters",
      "Dead letters",
      h("p", { class: "calm" }, "Changes that a target rejected, and later changes of the same rows."),
      missing(answer),
      data && data.total === 0 && h("p", { key: "none", class: "calm" }, "There are none."),
      data?.total > 0 && [
        h(
          "div",
          { key: "all", class: "buttons" },
          button("retry all", "Retry all", retryLetters(feed.name, {}, ofAll(data.total))),
          button("discard all", "Discard all", discardLetters(feed.name, {}, ofAll(data.total)), { kind: "quiet" }),
        ),
        data.total > LIMIT && h("p", { key: "first" }, `The first ${count(LIMIT)} of ${count(data.total)}`),
        table(
          "Dead letters",
          COLUMNS,
          data.dead_letters.map((letter) => letterRow(feed.name, letter)),
        ),
      ],
    ),
  );
}

function ofAll(total) {
  return total === 1 ? "the dead letter" : `all ${counted(total, "dead letter")}`;
}

function letterRow(feed, letter) {
  const choice = { sink: letter.sink, id: letter.id };
  const what = `the dead letters of ${letter.table} ${letter.key}`;
  const values = letter.after ?? letter.before;
  const cells = [
    [`${letter.table} ${letter.key}`, h("small", null, ` sink ${letter.sink}`)],
    [
      letter.op,
      values && h("details", null, h("summary", null, "Values"), h("pre", null, JSON.stringify(values, null, 1))),
    ],
    [letter.reason, letter.statement && h("code", null, letter.statement)],
    when(Date.parse(letter.time) / 1000),
    [
      button(`retry ${letter.sink} ${letter.id}`, "Retry", retryLetters(feed, choice, what), {
        label: `Retry ${letter.key}`,
      }),
      button(`discard ${letter.sink} ${letter.id}`, "Discard", discardLetters(feed, choice, what), {
        label: `Discard ${letter.key}`,
        kind: "quiet",
      }),
    ],
  ];
  return row(`${letter.sink} ${letter.id}`, COLUMNS, cells);
}

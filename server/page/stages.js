// The picture of a feed's stages, from the source to the targets, with what waits where and why.

import { ofQuota, SIGNS } from "./condition.js";
import { h } from "./dom.js";
import { bytes, count, counted, seconds } from "./format.js";
import { address, facts } from "./parts.js";

/** Seconds from which a wait is shown: shorter ones are everyday. */
const SHOWN_SECONDS = 1;
/** Waits of a stage that are shown as sentences. */
const NAMED = 2;
const OF_READING = ["region", "scan", "lookup", "region retry", "lock", "scan turn", "division"];
const OF_SORTING = ["memory", "table", "source"];

export function picture(feed, status, waits) {
  const isRunning = ["starting", "normal", "warning"].includes(feed.state);
  const byStage = isRunning ? waitsByStage(waits) : new Map();
  const stage = (key, title, entries) => box(key, title, facts(entries), byStage.get(key));
  const held = status.locks.reduce((sum, lock) => sum + lock.held_rows, 0);
  const received = status.received;
  return h(
    "ol",
    { class: isRunning ? "stages" : "stages resting" },
    stage("source", "Source", [
      ["", address(feed.source)],
      [
        "Connection",
        status.connected === undefined || !isRunning ? "" : status.connected ? "connected" : "not connected",
      ],
      ["Its end", status.head && address(status.head)],
    ]),
    stage("puller", "Puller", [
      ["Read up to", status.position && address(status.position)],
      ["Received", received?.bytes ? bytes(received.bytes) : ""],
      ["Reconnects", received?.reconnects ? count(received.reconnects) : ""],
    ]),
    stage("sorter", "Sorter", [
      ["Memory", ofQuota(status.sorter_memory_bytes, status.memory_quota_bytes)],
      ["Disk", status.sorter_disk_bytes ? ofQuota(status.sorter_disk_bytes, status.disk_quota_bytes) : ""],
    ]),
    stage("decoder", "Decoder", [
      ["Speed", `${count(status.rows_per_second)} rows/s`],
      ["Rows", count(status.rows)],
      ["", status.decoder && status.decoder !== "native" ? status.decoder : ""],
    ]),
    stage("chain", "Chain", [
      ["Held", held ? counted(held, "row") : "nothing"],
      ["Locks", status.locks.length ? count(status.locks.length) : ""],
    ]),
    h(
      "li",
      { key: "sinks", class: "sinks" },
      h(
        "ul",
        null,
        status.sinks.map((sink) => sinkBox(sink, byStage.get(`sink ${sink.name}`))),
      ),
    ),
  );
}

function sinkBox(sink, waits) {
  return box(
    sink.name,
    `Sink ${sink.name}`,
    facts([
      ["", address(sink.target)],
      ["Lag", seconds(sink.lag_seconds)],
      ["Written up to", sink.position && address(sink.position)],
      ["Rows", count(sink.rows)],
      ["Workers", sink.workers ? `${count(sink.workers_busy)} of ${count(sink.workers)} busy` : ""],
      ["Not durable yet", sink.transactions_waiting ? counted(sink.transactions_waiting, "transaction") : ""],
      ["Dead letters", sink.dead_letters ? count(sink.dead_letters) : ""],
      ["Safe mode", Object.keys(sink.safe_mode).join(", ")],
    ]),
    waits ?? (sink.detail ? [sink.detail] : []),
  );
}

function box(key, title, content, waits = []) {
  const tone = waits.length ? "warning" : null;
  return h(
    "li",
    { key, class: tone ? `stage ${tone}` : "stage" },
    h("h3", null, tone && h("span", { "aria-hidden": "true" }, SIGNS[tone]), title),
    waits.slice(0, NAMED).map((sentence) => h("p", { class: "why" }, sentence)),
    waits.length > NAMED && h("p", { class: "why" }, `and ${counted(waits.length - NAMED, "more wait")}`),
    content,
  );
}

/** Return the sentences of waits by the key of the stage that waits, the longest wait first. */
function waitsByStage(answer) {
  const found = new Map();
  if (!answer) return found;
  const paired = answer.waits.map((wait, index) => ({ wait, sentence: answer.sentences[index] }));
  for (const { wait, sentence } of paired.sort((a, b) => b.wait.seconds - a.wait.seconds)) {
    if (wait.seconds < SHOWN_SECONDS) continue;
    const key = stageOf(wait);
    const before = found.get(key) ?? [];
    if (!before.includes(sentence)) found.set(key, [...before, sentence]);
  }
  return found;
}

function stageOf({ stage, kind }) {
  if (kind === "held") return "chain";
  if (kind === "lock") return "source"; // of a transaction there
  if (OF_READING.includes(kind)) return "puller";
  if (OF_SORTING.includes(kind)) return "sorter";
  const sink = /^sink ([\w-]+)/.exec(stage);
  if (sink) return `sink ${sink[1]}`;
  if (stage === "decoder") return "decoder";
  if (stage === "program") return "sink program";
  if (/^(sorter|Writer|Merger|Intake|Db|Reader|Compactor)/.test(stage)) return "sorter";
  return kind === "answer" || kind === "retry" ? "source" : "puller";
}

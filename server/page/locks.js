// Schema changes of merged tables that wait for shards.

import { button, resolveLock } from "./actions.js";
import { h } from "./dom.js";
import { counted, longer } from "./format.js";
import { facts, section } from "./parts.js";

export function locksPart({ feed, status }) {
  return h(
    "div",
    { key: "locks", class: "part" },
    section(
      "locks",
      "Locks",
      h("p", { class: "calm" }, "Schema changes of merged tables that wait until all shards have made them."),
      status.locks.length === 0 && h("p", { key: "none", class: "calm" }, "There are none."),
      status.locks.map((lock) => ofLock(feed.name, lock)),
    ),
  );
}

function ofLock(feed, lock) {
  const key = `${lock.sink} ${lock.id}`;
  return h(
    "article",
    { key, class: "card", "aria-label": `Lock ${lock.id}` },
    h("h3", null, lock.id),
    lock.statement && h("pre", { tabindex: 0 }, lock.statement),
    facts([
      ["Waits for", lock.unsynced.join(", ") || "nobody"],
      ["Has been made by", lock.synced.join(", ")],
      ["First by", lock.owner],
      ["Waiting", longer(lock.seconds)],
      ["Held", counted(lock.held_rows, "row")],
      ["Sink", lock.sink],
    ]),
    h(
      "div",
      { class: "buttons" },
      button(`execute ${key}`, "Execute …", resolveLock(feed, lock, "exec"), {
        label: `Execute the change of ${lock.id}`,
      }),
      button(`skip ${key}`, "Skip …", resolveLock(feed, lock, "skip"), {
        kind: "quiet",
        label: `Skip the change of ${lock.id}`,
      }),
    ),
  );
}

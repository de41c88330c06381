// What a user can do: each asks first, with what will happen, then does it and says how it ended.

import { path, post, remove } from "./api.js";
import { ask, say } from "./dialog.js";
import { h } from "./dom.js";
import { refetch } from "./fetched.js";
import { counted, longer } from "./format.js";
import { link } from "./route.js";
import { changed, state } from "./state.js";

const running = new Set();

/** Return a button for an action: `key` names it, and it is off while the action runs or the server is lost. */
export function button(key, text, action, { kind = "", label = null } = {}) {
  // Not `disabled`, which would take the focus away.
  const isOff = running.has(key) || state.connection === "lost";
  const onclick = () => isOff || run(key, action);
  const attributes = { class: kind || null, "aria-label": label, "aria-disabled": isOff && "true" };
  return h("button", { type: "button", key, onclick, ...attributes }, text);
}

async function run(key, action) {
  try {
    const todo = await action();
    if (!todo) return;
    running.add(key);
    changed();
    say(await todo());
  } catch (error) {
    say(error.message, true);
  } finally {
    running.delete(key);
    refetch();
    changed();
  }
}

/** Return a function that does `todo` if the user agrees. */
function asked(question, todo) {
  return async () => ((await ask(question)) ? todo : null);
}

// --- feeds

export function pauseFeed(name, status) {
  const hours = status?.log_hours_left;
  const limit =
    hours === null || hours === undefined
      ? "The source has to keep its log meanwhile."
      : `The source keeps its log for ${longer(hours * 3600)} at its present rate: resume it before.`;
  return asked(
    {
      title: `Pause ${name}?`,
      text: [
        "It stops reading and writing after its checkpoints are saved, and stays paused until somebody resumes it, " +
          "also when the server is started again.",
        limit,
      ],
      verb: "Pause",
    },
    async () => {
      await post(path("feeds", name, "pause"));
      return `${name} is paused.`;
    },
  );
}

export function resumeFeed(name, hasFailed) {
  const text = ["It runs again from its checkpoint: nothing is lost, and nothing that is written is written twice."];
  if (hasFailed) text.push("If the cause of the failure is still there, it fails again, and nothing is changed.");
  return asked({ title: `Resume ${name}?`, text, verb: "Resume" }, async () => {
    const feed = await post(path("feeds", name, "resume"));
    if (feed.state === "failed") throw new Error(`${name} failed again: ${feed.detail}`);
    return `${name} runs again.`;
  });
}

export function skipStatement(name, position) {
  return asked(
    {
      title: `Skip the statement at ${position}?`,
      text: [
        "The targets don't get this statement, and the feed goes on after it. Its tables in the targets must fit the " +
          "later rows: change them by hand where they don't.",
      ],
      verb: "Skip and resume",
      isDanger: true,
    },
    async () => {
      await post(path("feeds", name, "resume"), { skip: [position] });
      return `${name} runs again, without the statement at ${position}.`;
    },
  );
}

export function removeFeed(name) {
  const data = h("input", { id: "with-data", type: "checkbox" });
  const typed = h("input", { id: "typed-name", type: "text", autocomplete: "off", spellcheck: "false" });
  return asked(
    {
      title: `Remove ${name}?`,
      text: [
        "It stops, and the server forgets its options. The targets keep their rows and the checkpoint; a new feed of " +
          "the same name and options goes on from there.",
      ],
      fields: [
        h("label", { class: "check" }, data, "Remove its data directory too"),
        h("label", { for: "typed-name" }, `Type the feed's name, ${name}, to confirm`),
        typed,
      ],
      verb: "Remove",
      isDanger: true,
      agrees: () => typed.value.trim() === name,
    },
    async () => {
      await remove(`${path("feeds", name)}${data.checked ? "?data=true" : ""}`);
      location.hash = link();
      return `${name} is removed.`;
    },
  );
}

// --- tables

const TABLE_VERBS = {
  pause: [
    "Pause",
    "Its changes are no longer written; the feed's other tables go on. To resume it, its rows are loaded again.",
    "is paused",
  ],
  resume: ["Resume", "Its rows are loaded again, and then it follows; the feed's other tables go on.", "is resumed"],
  reload: [
    "Reload",
    "All of its rows are read from the source again and written to the targets; the feed's other tables go on.",
    "will be loaded again",
  ],
};

export function tableAction(feed, table, verb) {
  const [word, sentence, result] = TABLE_VERBS[verb];
  return asked({ title: `${word} ${table}?`, text: [sentence], verb: word }, async () => {
    await post(path("feeds", feed, "tables", table, verb));
    return `${table} ${result}.`;
  });
}

// --- dead letters

/** `choice` is {} for all, or {sink, id} for those of one row; `total` their number, if known. */
export function retryLetters(feed, choice, what) {
  const text = [
    "They are applied in order, row by row. Those that the target rejects again stay; the feed goes on meanwhile.",
  ];
  return asked({ title: `Retry ${what}?`, text, verb: "Retry" }, async () => {
    const done = await post(path("feeds", feed, "dead-letters", "retry"), choice);
    const applied = counted(total(done.applied), "dead letter");
    if (done.rejected.length) throw new Error(`${applied} applied; rejected again: ${done.rejected[0].reason}`);
    return `${applied} applied.`;
  });
}

export function discardLetters(feed, choice, what) {
  const text = [
    "These changes are deleted without being applied: the rows in the target stay different from those of the source.",
  ];
  return asked({ title: `Discard ${what}?`, text, verb: "Discard", isDanger: true }, async () => {
    const done = await post(path("feeds", feed, "dead-letters", "discard"), choice);
    return `${counted(total(done.discarded), "dead letter")} discarded.`;
  });
}

function total(bySink) {
  return Object.values(bySink).reduce((sum, numbers) => sum + numbers.length, 0);
}

// --- locks

/** `action` is "exec" or "skip"; what will happen is what the server says to a dry run. */
export function resolveLock(feed, lock, action) {
  const where = path("feeds", feed, "locks", lock.id, "unlock");
  const verb = action === "exec" ? "Execute" : "Skip";
  return async () => {
    const { sentences } = await post(where, { action, dry_run: true });
    const text = [`It will ${sentences.join("; ")}.`];
    if (!(await ask({ title: `${verb} the schema change of ${lock.id}?`, text, verb, isDanger: true }))) return null;
    return async () => `It will ${(await post(where, { action })).sentences.join("; ")}.`;
  };
}

// --- comparisons

export function startComparison(feed, sinks) {
  const tables = h("input", { id: "tables", type: "text", placeholder: "shop.*", spellcheck: "false" });
  const rate = h("input", { id: "rate", type: "number", min: 0, step: 1000, placeholder: "unlimited" });
  const sink = h(
    "select",
    { id: "sink" },
    sinks.map((one) => h("option", { value: one.name }, one.name)),
  );
  return asked(
    {
      title: `Compare ${feed} with its target?`,
      text: [
        "All rows are read from the source and the target while the feed runs. Nothing is changed, but both " +
          "databases have the work of reading.",
      ],
      fields: [
        ...(sinks.length > 1 ? [h("label", { for: "sink" }, "Sink"), sink] : []),
        h("label", { for: "tables" }, "Tables, as patterns with spaces between them; empty: all"),
        tables,
        h("label", { for: "rate" }, "Maximum rows read per second"),
        rate,
      ],
      verb: "Compare",
    },
    async () => {
      const body = { tables: tables.value.split(/[\s,]+/).filter(Boolean), rate: Number(rate.value) || 0 };
      if (sinks.length > 1) body.sink = sink.value;
      const { job } = await post(path("feeds", feed, "diff"), body);
      location.hash = link(feed, "comparisons");
      return `Comparison ${job} has started.`;
    },
  );
}

export function stopComparison(feed, job) {
  const text = ["It ends without a result. The differences found so far stay here."];
  return asked({ title: `Stop comparison ${job}?`, text, verb: "Stop" }, async () => {
    await remove(path("feeds", feed, "diff", job));
    return `Comparison ${job} is stopped.`;
  });
}

// What a feed's summary means for the person who looks at it.

import { bytes, count, counted, seconds } from "./format.js";

/** Seconds of lag, without any row written, from which a feed counts as stalled. */
const STALLED_SECONDS = 30;
/** Seconds of lag from which a feed that writes counts as behind. */
const BEHIND_SECONDS = 60;

/** Conditions by urgency; those with `needs` need a person. `tone` is a colour and a sign. */
const CONDITIONS = {
  failed: { word: "Failed", tone: "alarm", needs: true },
  stalled: { word: "Stalled", tone: "alarm", needs: true },
  warning: { word: "Warning", tone: "warning", needs: true },
  behind: { word: "Behind", tone: "busy" },
  loading: { word: "Loading", tone: "busy" },
  starting: { word: "Starting", tone: "busy" },
  stopped: { word: "Paused", tone: "rest" },
  normal: { word: "Following", tone: "well" },
  idle: { word: "Idle", tone: "well" },
  finished: { word: "Finished", tone: "rest" },
};
const ORDER = Object.keys(CONDITIONS);
export const SIGNS = { alarm: "▲", warning: "◆", busy: "●", well: "✓", rest: "‖" };

/** Return {name, word, tone, needs, why} of a feed's summary; `why` is a sentence, or empty. */
export function conditionOf(feed) {
  const [name, why] = judged(feed);
  return { name, why, needs: false, ...CONDITIONS[name] };
}

function judged(feed) {
  const failed = feed.table_states.failed ?? 0;
  const loading = feed.table_states.loading ?? 0;
  const lag = feed.lag ?? 0;
  if (feed.state !== "normal") return [feed.state, feed.detail];
  if (failed) return ["warning", `${counted(failed, "table")} failed; the others go on`];
  const isWriting = feed.rows_per_second > 0;
  if (loading) return ["loading", `${counted(loading, "table")} being loaded`];
  if (lag >= STALLED_SECONDS && !isWriting) {
    return ["stalled", `Nothing reaches the target, which is ${seconds(lag)} behind`];
  }
  if (lag >= BEHIND_SECONDS) return ["behind", `Catching up at ${count(feed.rows_per_second)} rows/s`];
  return [isWriting ? "normal" : "idle", ""];
}

/** Return feeds with their conditions, the most urgent first; feeds of a condition by name, so that they stay. */
export function byUrgency(feeds) {
  const judgedFeeds = feeds.map((feed) => ({ feed, condition: conditionOf(feed) }));
  const rank = ({ condition }) => ORDER.indexOf(condition.name);
  return judgedFeeds.sort((a, b) => rank(a) - rank(b) || (a.feed.name < b.feed.name ? -1 : 1));
}

/** Return how many of these feeds need a person. */
export function needing(feeds) {
  return feeds.filter((feed) => conditionOf(feed).needs).length;
}

/** "312.5 MiB of 512.0 MiB", or without a quota only the first. */
export function ofQuota(used, quota) {
  return quota ? `${bytes(used)} of ${bytes(quota)}` : bytes(used);
}

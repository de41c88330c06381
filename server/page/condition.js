// What a feed's summary means for the person who looks at it.

import { bytes, count, counted, seconds } from "./format.js";

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
  return { name: feed.condition, why: reason(feed), needs: false, ...CONDITIONS[feed.condition] };
}

function reason(feed) {
  const { failed = 0, loading = 0 } = feed.table_states;
  switch (feed.condition) {
    case "stalled":
      return `Nothing reaches the target, which is ${seconds(feed.lag)} behind`;
    case "behind":
      return `Catching up at ${count(feed.rows_per_second)} rows/s`;
    case "loading":
      return `${counted(loading, "table")} being loaded`;
    case "warning":
      return feed.detail || `${counted(failed, "table")} failed; the others go on`;
    default:
      return feed.detail;
  }
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

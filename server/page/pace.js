// The time that a load has left, by the rows that came in the last minute.

const WINDOW_SECONDS = 60;
const seen = []; // [time, rows] of one table
let table = "";

/** Note the progress of a feed's event. */
export function observe({ feed, status }) {
  const snapshot = status.snapshot;
  const name = snapshot ? `${feed.name} ${snapshot.table}` : "";
  if (name !== table) seen.length = 0;
  table = name;
  if (!snapshot) return;
  seen.push([status.updated, snapshot.rows]);
  while (seen.length > 2 && seen[0][0] < status.updated - WINDOW_SECONDS) seen.shift();
}

/** Return the seconds until a snapshot's table is loaded; null while that isn't known. */
export function secondsLeft(snapshot) {
  if (seen.length < 2) return null;
  const [[began, before], [ended, rows]] = [seen[0], seen[seen.length - 1]];
  const rate = (rows - before) / (ended - began);
  const left = snapshot.rows_estimated - rows;
  return rate > 0 && left > 0 ? left / rate : null;
}

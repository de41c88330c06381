// What the page knows, and a redraw when it changes.

/** The latest events, and the connection they come over. */
export const state = {
  feeds: null, // list of summaries; null before the first event
  detail: null, // {feed, status} of the feed that is shown; null before its first event
  isGone: false, // true if the server has no feed of the name in the address
  connection: "connecting", // or "live" or "lost"
  lostAt: 0, // Unix seconds of the server
  lostWhy: "",
};

let draw = () => {};
let isDue = false;

/** Set the function that draws the page. */
export function drawWith(function_) {
  draw = function_;
}

/** Draw the page before the browser's next frame. */
export function changed() {
  if (isDue) return;
  isDue = true;
  requestAnimationFrame(() => {
    isDue = false;
    draw();
  });
}

// Times of the server: relative ones, which go on by themselves, and absolute ones.

import { h } from "./dom.js";
import { longer } from "./format.js";

let ahead = 0; // seconds that the server's clock is ahead of this machine's

/** Take the server's time from the header Date of a response. */
export function noteDate(header) {
  const time = Date.parse(header ?? "");
  if (Number.isNaN(time)) return;
  const measured = (time - Date.now()) / 1000;
  // The header has whole seconds: a smaller difference says nothing.
  if (Math.abs(measured - ahead) > 2) ahead = Math.abs(measured) > 2 ? measured : 0;
}

/** Return the server's present time, in Unix seconds. */
export function now() {
  return Date.now() / 1000 + ahead;
}

/** "2026-11-28 12:03:04", in the browser's time zone. */
export function absolute(unix) {
  const time = new Date(unix * 1000);
  const two = (number) => String(number).padStart(2, "0");
  const day = `${time.getFullYear()}-${two(time.getMonth() + 1)}-${two(time.getDate())}`;
  return `${day} ${two(time.getHours())}:${two(time.getMinutes())}:${two(time.getSeconds())}`;
}

function ago(unix) {
  const passed = now() - unix;
  return passed < 1 ? "now" : `${longer(passed)} ago`;
}

function during(unix) {
  return `for ${longer(Math.max(1, now() - unix))}`;
}

/** Return the element of a time as "3 min ago", with the absolute time beside it. */
export function when(unix) {
  return h("span", { class: "when" }, relative(unix, "ago"), " ", h("small", null, absolute(unix)));
}

/** Return "for 3 min" for a condition that is a state of the feed: only of states the time is known. */
export function since(feed, condition) {
  return condition.name === feed.state ? relative(feed.since, "for") : null;
}

function relative(unix, form) {
  const properties = { datetime: new Date(unix * 1000).toISOString(), "data-at": unix, "data-form": form };
  return h("time", { ...properties, title: absolute(unix) }, form === "ago" ? ago(unix) : during(unix));
}

/** Bring all relative times of the page up to date. */
export function tick() {
  for (const element of document.querySelectorAll("time[data-at]")) {
    const unix = Number(element.dataset.at);
    const text = element.dataset.form === "ago" ? ago(unix) : during(unix);
    if (element.textContent !== text) element.textContent = text;
  }
}

/** "UTC+1" */
export function zone() {
  const minutes = -new Date().getTimezoneOffset();
  const sign = minutes < 0 ? "-" : "+";
  const hours = Math.floor(Math.abs(minutes) / 60);
  const rest = Math.abs(minutes) % 60;
  return minutes ? `UTC${sign}${hours}${rest ? `:${String(rest).padStart(2, "0")}` : ""}` : "UTC";
}

// The page: events of the server in, views of them out.

import { fill, h } from "./dom.js";
import { feedView } from "./feed.js";
import { feedsView } from "./feeds.js";
import { begin, end, refetch } from "./fetched.js";
import { needing } from "./condition.js";
import { observe } from "./pace.js";
import { route } from "./route.js";
import { changed, drawWith, state } from "./state.js";
import { follow } from "./stream.js";
import { absolute, now, tick, zone } from "./time.js";

const main = document.getElementById("main");
let stream = null;
let shown = null; // the address that is shown, without its query

// --- events

function open() {
  stream?.close();
  const { feed } = route();
  stream = follow(feed, {
    connected() {
      const wasLost = state.connection === "lost";
      state.connection = "live";
      if (wasLost) refetch();
      changed();
    },
    event(name, data) {
      if (name === "feeds") state.feeds = data.feeds;
      else if (name === "feed" && data.feed.name === route().feed) {
        state.detail = data;
        observe(data);
      }
      changed();
    },
    lost(error) {
      if (state.connection !== "lost") state.lostAt = now();
      state.connection = "lost";
      state.lostWhy = error?.status ? error.message : "";
      changed();
    },
    gone() {
      state.isGone = true;
      changed();
    },
  });
}

function navigate() {
  const { feed, part } = route();
  const address = `${feed}/${part}`;
  if (address === shown) return changed();
  const isFirst = shown === null;
  const isOther = isFirst || shown.split("/")[0] !== feed;
  shown = address;
  if (isOther) {
    state.detail = null;
    state.isGone = false;
    open();
  }
  draw();
  if (isFirst) return undefined;
  scrollTo(0, 0);
  return (main.querySelector(isOther ? "h1" : ".part h2") ?? main).focus({ preventScroll: true });
}

// --- drawing

function draw() {
  const { feed } = route();
  begin();
  if (state.feeds !== null) fill(main, feed ? feedView(route()) : feedsView(route()));
  end();
  main.classList.toggle("lost", state.connection === "lost");
  drawConnection();
  const urgent = needing(state.feeds ?? []);
  document.title = `${urgent ? `(${urgent}) ` : ""}${feed ? `${feed} – ` : ""}tidemill`;
}

function drawConnection() {
  const words = { live: "Live", lost: "No connection", connecting: "Connecting …" };
  const connection = document.getElementById("connection");
  connection.className = state.connection;
  fill(connection, words[state.connection]);
  const since = absolute(state.lostAt).slice(11);
  const why = state.lostWhy ? ` It says: ${state.lostWhy}` : "";
  const then = state.feeds === null ? "tries again" : "shows the state of then, and tries again";
  const sentence = `No connection to the server since ${since}. This page ${then}.${why}`;
  fill(document.getElementById("lost"), state.connection === "lost" && h("p", null, sentence));
  fill(document.getElementById("footer"), `Times are ${zone()}.`);
}

document.getElementById("skip").addEventListener("click", (event) => {
  event.preventDefault();
  main.focus();
});
addEventListener("hashchange", navigate);
addEventListener("visibilitychange", () => {
  // Browsers open few connections to one server: a hidden tab leaves its own to others.
  if (document.hidden) stream?.close();
  else open();
});
setInterval(() => {
  tick();
  if (!document.hidden) changed(); // views fetch what has become old
}, 1000);
drawWith(draw);
navigate();

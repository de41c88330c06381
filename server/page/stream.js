// The server's events: one stream, which is opened again whenever it ends.

import { Refused, request, withQuery } from "./api.js";

const SILENT_MS = 35_000; // the server sends something every 15 s
const PAUSES_MS = [300, 1_000, 2_000, 3_000];

/**
 * Follow the events, with the feed of this name ("": none) among them, until `close` is called.
 *
 * `on.event(name, data)` is called for each, `on.connected()` at each beginning, `on.lost(error)` at each end,
 * and `on.gone()` if there is no such feed.
 */
export function follow(feed, on) {
  let isClosed = false;
  let failures = 0;
  let abort = null;
  let wake = () => {};

  async function run() {
    while (!isClosed) {
      abort = new AbortController();
      const silence = new Watch(() => abort.abort());
      try {
        silence.restart();
        const response = await request("GET", withQuery("events", { feed }), { signal: abort.signal });
        if (isClosed) return;
        on.connected();
        failures = 0;
        for await (const [name, data] of messages(response.body, () => silence.restart())) {
          if (isClosed) return;
          on.event(name, data);
        }
        if (!isClosed) on.lost(null);
      } catch (error) {
        if (isClosed) return;
        if (error instanceof Refused && error.status === 404 && feed) {
          feed = "";
          on.gone();
          continue;
        }
        on.lost(error);
      } finally {
        silence.stop();
        abort.abort();
      }
      const pause = PAUSES_MS[Math.min(failures++, PAUSES_MS.length - 1)];
      await new Promise((resolve) => {
        wake = resolve;
        setTimeout(resolve, pause);
      });
    }
  }

  const online = () => wake();
  const offline = () => abort?.abort();
  addEventListener("online", online);
  addEventListener("offline", offline);
  run();
  return {
    close() {
      isClosed = true;
      abort?.abort();
      wake();
      removeEventListener("online", online);
      removeEventListener("offline", offline);
    },
  };
}

/** Yields [name, data] of server-sent events; `heard` is called for all that comes, comments too. */
async function* messages(body, heard) {
  const reader = body.pipeThrough(new TextDecoderStream()).getReader();
  let rest = "";
  for (;;) {
    const { done, value } = await reader.read();
    if (done) return;
    heard();
    const parts = (rest + value).split("\n\n");
    rest = parts.pop();
    for (const part of parts) {
      let name = "message";
      const data = [];
      for (const line of part.split("\n")) {
        if (line.startsWith("event: ")) name = line.slice(7);
        else if (line.startsWith("data: ")) data.push(line.slice(6));
      }
      if (data.length) yield [name, JSON.parse(data.join("\n"))];
    }
  }
}

class Watch {
  constructor(bark) {
    this.bark = bark;
  }

  restart() {
    clearTimeout(this.timer);
    this.timer = setTimeout(this.bark, SILENT_MS);
  }

  stop() {
    clearTimeout(this.timer);
  }
}

// Answers of the server that views need: fetched when a view asks for one, and again while it is shown.

import { get, Refused } from "./api.js";
import { changed } from "./state.js";

class Answer {
  path = null; // of the present data, or of the request on its way
  data = null;
  error = null;
  isStale = false; // true if the data are of another path than was asked for
  at = 0;
  used = true;
  abort = null;

  async load(path) {
    this.abort?.abort();
    const abort = (this.abort = new AbortController());
    this.isStale = this.path !== path;
    this.path = path;
    try {
      const data = await get(path, abort.signal);
      if (this.abort !== abort) return;
      this.data = data;
      this.error = null;
    } catch (error) {
      if (this.abort !== abort) return;
      // While the server is lost, the page says so, and what was fetched before stays.
      if (error instanceof Refused) this.error = error;
    }
    this.abort = null;
    this.isStale = false;
    this.at = performance.now();
    changed();
  }
}

const answers = new Map();

/**
 * Return {data, error, isStale} of a path: `data` is null at first; while another path is fetched under the same
 * name, the data before are kept. It is fetched again after `every` seconds, if given, and after `refetch`.
 */
export function fetched(name, path, every = 0) {
  let answer = answers.get(name);
  if (!answer) answers.set(name, (answer = new Answer()));
  answer.used = true;
  const isOld = every && !answer.abort && performance.now() - answer.at > every * 1000;
  if (answer.path !== path || isOld) answer.load(path);
  return answer;
}

/** Fetch again all that is shown. */
export function refetch() {
  for (const answer of answers.values()) {
    if (answer.path !== null) answer.load(answer.path);
  }
}

/** Call before the views are made. */
export function begin() {
  for (const answer of answers.values()) answer.used = false;
}

/** Call after the views are made: what none of them asked for is forgotten. */
export function end() {
  for (const [name, answer] of answers) {
    if (answer.used) continue;
    answer.abort?.abort();
    answer.abort = null;
    answers.delete(name);
  }
}

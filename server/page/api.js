// Requests to the server.

import { askForToken, token } from "./token.js";
import { noteDate } from "./time.js";

const BASE = new URL("api/v1/", document.baseURI);

/** A request that the server refused: `message` is its sentence, `field` the key that is wrong, if one is. */
export class Refused extends Error {
  constructor(status, message, field = null) {
    super(message);
    this.status = status;
    this.field = field;
  }
}

/** The server gave no answer. */
class Unreachable extends Error {}

/** ("feeds", "a b") → "feeds/a%20b" */
export function path(...names) {
  return names.map(encodeURIComponent).join("/");
}

/** Return "path?name=value"; values that are empty are left out. */
export function withQuery(where, query) {
  const entries = Object.entries(query).filter(([, value]) => value !== "" && value !== null && value !== undefined);
  return entries.length ? `${where}?${new URLSearchParams(entries)}` : where;
}

export const get = async (where, signal) => (await request("GET", where, { signal })).json();
export const post = async (where, body = {}) => (await request("POST", where, { body })).json();
export const remove = async (where) => (await request("DELETE", where)).json();

/** Return the response of a success. Asks for a token where one is needed. Throws Refused and Unreachable. */
export async function request(method, where, { body, signal } = {}) {
  for (;;) {
    const shown = token();
    const headers = { Accept: "application/json, text/event-stream" };
    if (shown) headers.Authorization = `Bearer ${shown}`;
    if (body !== undefined) headers["Content-Type"] = "application/json";
    let response;
    try {
      const text = body === undefined ? undefined : JSON.stringify(body);
      response = await fetch(new URL(where, BASE), { method, headers, body: text, signal, cache: "no-store" });
    } catch (error) {
      if (signal?.aborted) throw error;
      throw new Unreachable("The server gives no answer.");
    }
    noteDate(response.headers.get("Date"));
    if (response.ok) return response;
    if (response.status !== 401) throw await refusal(response);
    await askForToken(shown);
  }
}

async function refusal(response) {
  try {
    const { error } = await response.json();
    return new Refused(response.status, error.message, error.field);
  } catch {
    return new Refused(response.status, `The server answered with status ${response.status}.`);
  }
}

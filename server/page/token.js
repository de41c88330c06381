// The token of this browser tab, which the user is asked for once.

import { ask } from "./dialog.js";
import { h } from "./dom.js";

const KEY = "tidemill.token";

let held = null; // where the browser keeps nothing
let asking = null;

export function token() {
  try {
    return sessionStorage.getItem(KEY) ?? held;
  } catch {
    return held;
  }
}

/** Ask for a token because `refused` (null: none) wasn't accepted; return when there is another one. */
export async function askForToken(refused) {
  if (token() !== refused) return; // another request has asked already
  asking ??= prompt(refused !== null).finally(() => (asking = null));
  await asking;
}

async function prompt(wasRefused) {
  const input = h("input", { id: "token", type: "password", autocomplete: "current-password", required: true });
  const form = await ask({
    title: "Token",
    text: [wasRefused ? "The server doesn't know this token." : "This server answers to clients with a token only."],
    fields: [h("label", { for: "token" }, "Token, as in the server's --token-file"), input],
    verb: "Continue",
    isRequired: true,
  });
  held = form ? input.value.trim() : held;
  try {
    sessionStorage.setItem(KEY, held);
  } catch {
    // It holds until the page is loaded again.
  }
}

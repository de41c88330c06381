// Questions to the user.

import { h } from "./dom.js";

/**
 * Ask in a dialog; return true if the user agrees.
 *
 * `text` are sentences that say what will happen, `fields` elements of the form, `verb` the button's word;
 * `isDanger` for what can't be undone; without a way back if `isRequired`. `agrees` returns true once the form
 * is complete.
 */
export function ask({
  title,
  text = [],
  fields = [],
  verb,
  isDanger = false,
  isRequired = false,
  agrees = () => true,
}) {
  const go = h("button", { type: "submit", class: isDanger ? "danger" : "primary", value: "go" }, verb);
  const back = h("button", { type: "button", onclick: () => dialog.close() }, "Cancel");
  const form = h(
    "form",
    { method: "dialog", oninput: () => (go.disabled = !agrees()) },
    h("h2", { id: "dialog-title" }, title),
    h(
      "div",
      { id: "dialog-text" },
      text.map((sentence) => h("p", null, sentence)),
    ),
    fields.length > 0 && h("div", { class: "fields" }, fields),
    h("div", { class: "buttons" }, go, !isRequired && back),
  );
  const dialog = h("dialog", { "aria-labelledby": "dialog-title", "aria-describedby": "dialog-text" }, form);
  go.disabled = !agrees();
  document.body.append(dialog);
  const before = document.activeElement;
  return new Promise((resolve) => {
    if (isRequired) dialog.addEventListener("cancel", (event) => event.preventDefault());
    dialog.addEventListener("close", () => {
      dialog.remove();
      before?.focus?.();
      resolve(dialog.returnValue === "go");
    });
    dialog.showModal();
    (fields.find((field) => field.matches("input, select")) ?? (isDanger ? back : go)).focus();
  });
}

const SAID_MS = 10_000;

/** Say how something ended; screen readers say it too. An error stays until it is dismissed. */
export function say(text, isError = false) {
  const shown = document.getElementById(isError ? "refused" : "said");
  const other = document.getElementById(isError ? "said" : "refused");
  other.replaceChildren();
  const dismiss = h("button", { type: "button", onclick: () => shown.replaceChildren() }, "Dismiss");
  const said = h("p", null, text);
  shown.replaceChildren(said, dismiss);
  if (!isError) setTimeout(() => said.isConnected && shown.replaceChildren(), SAID_MS);
}

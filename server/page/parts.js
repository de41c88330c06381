// Pieces that several views are made of.

import { h } from "./dom.js";
import { SIGNS } from "./condition.js";

/** Return a state as a sign and a word. */
export function badge({ tone, word }) {
  return h("span", { class: `badge ${tone}` }, h("span", { "aria-hidden": "true" }, SIGNS[tone]), word);
}

/** Return a section with a heading. */
export function section(key, title, ...content) {
  const heading = h("h2", { id: `${key}-title`, tabindex: -1 }, title);
  return h("section", { key, id: key, "aria-labelledby": `${key}-title` }, heading, content);
}

/**
 * Return a table. `columns` are {title, class, head}: `head` replaces the title by an element. `rows` are rows made
 * by `row`. Narrow screens show a row as a block, so the roles are said.
 */
export function table(label, columns, rows, { isBusy = false } = {}) {
  const heads = columns.map(({ title, class: kind, head, sort }) =>
    h("th", { role: "columnheader", scope: "col", class: kind, "aria-sort": sort }, head ?? title),
  );
  return h(
    "table",
    { role: "table", "aria-label": label, "aria-busy": isBusy && "true", class: isBusy && "busy" },
    h("thead", { role: "rowgroup" }, h("tr", { role: "row" }, heads)),
    h("tbody", { role: "rowgroup" }, rows),
  );
}

/** Return a row of a table; `cells` are contents in the order of `columns`, the first of them the row's head. */
export function row(key, columns, cells, kind = null) {
  const made = cells.map((cell, index) => {
    const { title, class: name } = columns[index];
    const properties = { "data-title": title, class: name };
    if (index === 0) return h("th", { role: "rowheader", scope: "row", ...properties }, cell);
    return h("td", { role: "cell", ...properties }, cell);
  });
  return h("tr", { role: "row", key, class: kind }, made);
}

/** Return what stands for an answer that isn't there: its error, or a note that it is on its way; else null. */
export function missing({ data, error }) {
  if (error) return h("p", { class: "problem", key: "problem" }, error.message);
  return data ? null : h("p", { class: "calm", key: "waiting" }, "Loading …");
}

/** Return a progress bar with its sentence; `percent` null: unknown. */
export function progress(label, percent, sentence) {
  const bar = h("progress", { max: 100, value: percent, "aria-label": label });
  return h("div", { class: "progress" }, bar, h("p", null, sentence));
}

/** Return a choice among values as buttons that stay pressed. `choices` are [value, text]. */
export function chips(label, choices, chosen, choose) {
  const made = choices.map(([value, text]) => {
    const properties = { type: "button", key: value, class: "chip", "aria-pressed": String(value === chosen) };
    return h("button", { ...properties, onclick: () => choose(value) }, text);
  });
  return h("div", { role: "group", "aria-label": label, class: "chips" }, made);
}

/** Return a search field that calls `search` a moment after the last letter. */
export function searchField(label, value, search) {
  let timer;
  const oninput = (event) => {
    clearTimeout(timer);
    const text = event.target.value;
    timer = setTimeout(() => search(text), 200);
  };
  return h("input", { type: "search", key: "search", "aria-label": label, placeholder: label, value, oninput });
}

/** Return an address that a narrow line breaks where its parts begin. */
export function address(text) {
  return text.split(/(?<=[/@:,])(?![/@:,])/).flatMap((part) => [part, h("wbr")]);
}

/** Return names and values; a value may be an element. */
export function facts(entries) {
  const shown = entries.filter(([, value]) => value !== null && value !== undefined && value !== "");
  return h(
    "dl",
    { class: "facts" },
    shown.map(([name, value]) => h("div", null, h("dt", null, name), h("dd", null, value))),
  );
}

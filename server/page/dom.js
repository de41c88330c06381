// Elements from descriptions, and a page that is brought up to date without losing focus, selection or scroll.

const HANDLERS = ["onclick", "oninput", "onchange", "onsubmit", "onkeydown"];
const PROPERTIES = ["key", "value", "checked", "disabled", ...HANDLERS];

/** An element that is made only if `value` isn't the one of the element that is shown. */
class Memo {
  constructor(key, value, build) {
    this.key = key;
    this.value = value;
    this.build = build;
  }
}

/** Return a child that is made again only when `value` changes; `key` is unique among its siblings. */
export function memo(key, value, build) {
  return new Memo(key, value, build);
}

/**
 * Return an element. Texts become text nodes, never HTML. Properties: `key` names it among its siblings, `on…` are
 * handlers, `style` is an object, `value`, `checked` and `disabled` are properties, all others are attributes;
 * one that is null, undefined or false is left out.
 */
export function h(tag, properties, ...children) {
  const element = document.createElement(tag);
  for (const [name, value] of Object.entries(properties ?? {})) {
    if (value === null || value === undefined || value === false) continue;
    if (PROPERTIES.includes(name)) element[name] = value;
    else if (name === "style") {
      for (const [property, set] of Object.entries(value)) element.style.setProperty(property, set);
    } else element.setAttribute(name, value === true ? "" : value);
  }
  const nodes = flat(children);
  if (nodes.some((node) => node instanceof Memo)) element.later = nodes;
  else element.append(...nodes);
  return element;
}

/** Bring the children of an element of the page to these, keeping what is the same. */
export function fill(parent, ...children) {
  reconcile(parent, flat(children));
}

function flat(children) {
  return children
    .flat(Infinity)
    .filter((child) => child !== null && child !== undefined && child !== false)
    .map((child) => (child instanceof Node || child instanceof Memo ? child : document.createTextNode(child)));
}

function reconcile(parent, fresh) {
  const wanted = new Set(fresh.map((node) => node.key));
  const keyed = new Map();
  for (const child of [...parent.childNodes]) {
    if (child.key === undefined) continue;
    if (wanted.has(child.key)) keyed.set(child.key, child);
    else child.remove();
  }
  let cursor = parent.firstChild;
  const keep = (shown) => {
    if (shown === cursor) cursor = cursor.nextSibling;
    else move(parent, shown, cursor);
  };
  for (const node of fresh) {
    const free = cursor && cursor.key === undefined ? cursor : undefined;
    const shown = node.key === undefined ? free : keyed.get(node.key);
    if (node instanceof Memo && shown && shown.memo === node.value) {
      keep(shown);
      continue;
    }
    const made = node instanceof Memo ? node.build() : node;
    if (shown && isSameKind(shown, made)) {
      keep(shown);
      update(shown, made);
    } else {
      complete(made);
      parent.insertBefore(made, cursor);
    }
    const placed = made.parentNode === parent ? made : shown;
    placed.key = node.key;
    if (node instanceof Memo) placed.memo = node.value;
  }
  while (cursor) {
    const next = cursor.nextSibling;
    cursor.remove();
    cursor = next;
  }
}

/** Move a child; where the browser can, an element in it keeps the focus. */
function move(parent, child, before) {
  if (parent.moveBefore) parent.moveBefore(child, before);
  else parent.insertBefore(child, before);
}

/** Make the children that wait until their element is shown. */
function complete(element) {
  if (element.later) reconcile(element, element.later);
  delete element.later;
  for (const child of element.children ?? []) complete(child);
}

function isSameKind(one, other) {
  return one.nodeType === other.nodeType && one.nodeName === other.nodeName;
}

function update(shown, fresh) {
  if (shown.nodeType === Node.TEXT_NODE) {
    if (shown.data !== fresh.data) shown.data = fresh.data;
    return;
  }
  for (const { name } of [...shown.attributes]) {
    // Whether details are open is the reader's choice.
    if (name !== "style" && name !== "open" && !fresh.hasAttribute(name)) shown.removeAttribute(name);
  }
  for (const { name, value } of fresh.attributes) {
    if (name !== "style" && shown.getAttribute(name) !== value) shown.setAttribute(name, value);
  }
  if (shown.style.cssText !== fresh.style.cssText) shown.style.cssText = fresh.style.cssText;
  for (const name of HANDLERS) shown[name] = fresh[name];
  if ("disabled" in fresh && shown.disabled !== fresh.disabled) shown.disabled = fresh.disabled;
  reconcile(shown, fresh.later ?? [...fresh.childNodes]);
  // What is being typed or chosen stays.
  if ("value" in fresh && shown !== document.activeElement && shown.value !== fresh.value) shown.value = fresh.value;
  if ("checked" in fresh && shown.checked !== fresh.checked) shown.checked = fresh.checked;
}

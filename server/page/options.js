// The options of a feed, as its file has them.

import { path } from "./api.js";
import { h } from "./dom.js";
import { fetched } from "./fetched.js";
import { missing, section } from "./parts.js";

export function optionsPart({ feed }) {
  const answer = fetched("options", path("feeds", feed.name));
  const text = answer.data && JSON.stringify(answer.data.options, null, 2);
  return h(
    "div",
    { key: "options", class: "part" },
    section(
      "options",
      "Options",
      h("p", { class: "calm" }, "The feed's file, without its secrets."),
      missing(answer),
      text && h("pre", { key: "text", tabindex: 0, "aria-label": "Options" }, text),
    ),
  );
}

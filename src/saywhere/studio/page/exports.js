/** Files to save: a narrative in four formats, or anything else that the server makes. */

import * as api from "./api.js";
import { h, icon } from "./dom.js";
import { toastProblem } from "./notices.js";

const FORMATS = [
  ["localized_narratives", "Localized Narratives", "JSON lines, the official format"],
  ["web_annotation", "Web Annotation", "W3C JSON-LD"],
  ["coco", "COCO", "boxes and captions"],
  ["text", "Alt text", "short, and a long description"],
];

/** A narrative's. id: a function that gives its id when it is asked for. */
export const exportMenu = (id) => fileMenu(FORMATS, (format) => api.exported(id(), format));

/** formats: [[format, name, what it is]]. fetched: gives {name, blob} of a format. */
export function fileMenu(formats, fetched) {
  const items = formats.map(([format, name, what]) =>
    h("button", { type: "button", onclick: () => save(() => fetched(format), menu) }, name, h("small", {}, what)));
  const menu = h("details", { class: "menu export" }, h("summary", { class: "button quiet" }, icon("down"), h("span", {}, "Export")), h("div", { class: "sheet" }, items));
  return menu;
}

async function save(fetched, menu) {
  try {
    const { name, blob } = await fetched();
    const address = URL.createObjectURL(blob);
    h("a", { href: address, download: name }).click();
    setTimeout(() => URL.revokeObjectURL(address), 60000);
    menu.open = false;
    menu.querySelector("summary").focus();
  } catch (error) {
    if (!(error instanceof api.Refused)) throw error;
    toastProblem(error, "Export");
  }
}

/** Menus close when something else is pressed, or by Escape. */
addEventListener("pointerdown", (event) => {
  for (const menu of document.querySelectorAll("details.menu[open]")) if (!menu.contains(event.target)) menu.open = false;
});
addEventListener("keydown", (event) => {
  const menu = event.key === "Escape" && document.querySelector("details.menu[open]");
  if (!menu) return;
  menu.open = false;
  menu.querySelector("summary").focus();
  event.stopImmediatePropagation();
}, true);

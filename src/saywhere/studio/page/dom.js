/** Elements without markup: text only ever goes in as text. */

const SVG = "http://www.w3.org/2000/svg";

/** An element. attributes: `onX` are listeners, true and false set or leave out, the rest are written as they are. */
export function h(tag, attributes = {}, ...children) {
  return filled(document.createElement(tag), attributes, children);
}

/** The same for drawings. */
export function s(tag, attributes = {}, ...children) {
  return filled(document.createElementNS(SVG, tag), attributes, children);
}

function filled(element, attributes, children) {
  for (const [name, value] of Object.entries(attributes)) {
    if (name.startsWith("on")) element.addEventListener(name.slice(2), value);
    else if (value === true) element.setAttribute(name, "");
    else if (value !== false && value !== null && value !== undefined) element.setAttribute(name, value);
  }
  element.append(...children.flat().filter((child) => child !== null && child !== undefined && child !== false));
  return element;
}

const ICONS = {
  add: ["M10 4v12M4 10h12"],
  back: ["M12.5 4.5L7 10l5.5 5.5"],
  bin: ["M4 6h12M8 6V4h4v2M6 6l.7 10h6.6L14 6"],
  box: ["M4 5h12v10H4z"],
  close: ["M5 5l10 10M15 5L5 15"],
  cut: ["M4 10c0-4 3-6 6-6 4 0 6 3 6 6s-2 6-6 6-6-2-6-6z", "M8 8h.01M12 8h.01M8 12h.01M12 12h.01"],
  copy: ["M7 7h9v9H7z", "M13 7V4H4v9h3"],
  down: ["M10 4v9M6 9.5l4 4 4-4M4 16.5h12"],
  forth: ["M7.5 4.5L13 10l-5.5 5.5"],
  heat: ["M10 3c1 3 4 4.5 4 8a4 4 0 0 1-8 0c0-1.5.7-2.5 1.5-3.3.3 1.3 1 1.8 1.5 1.8C9.5 7.5 8.5 6 10 3z"],
  lasso: ["M10 4c4 0 7 1.8 7 4.5S14 13 10 13s-7-1.8-7-4.5S6 4 10 4z", "M7 12.8c-1.5 1-1.5 3 .5 3.7"],
  mic: ["M10 3a2.3 2.3 0 0 1 2.3 2.3v4a2.3 2.3 0 0 1-4.6 0v-4A2.3 2.3 0 0 1 10 3z", "M5 9.5a5 5 0 0 0 10 0M10 14.5V17"],
  muted: ["M10 3a2.3 2.3 0 0 1 2.3 2.3v4a2.3 2.3 0 0 1-4.6 0v-4A2.3 2.3 0 0 1 10 3z", "M5 9.5a5 5 0 0 0 10 0M10 14.5V17M3.5 3.5l13 13"],
  moon: ["M15.5 12.2A6.5 6.5 0 0 1 7.8 4.5a6.5 6.5 0 1 0 7.7 7.7z"],
  pause: ["M7 4.5v11M13 4.5v11"],
  photo: ["M3.5 5h13v10.5h-13z", "M4 13.5l3.5-3.5 3 3 2.5-2 3.5 3"],
  play: ["M7 4.5l8.5 5.5L7 15.5z"],
  point: ["M10 3v4M10 13v4M3 10h4M13 10h4", "M9.9 10h.2"],
  redo: ["M15 7.5H8a4 4 0 0 0 0 8h4M12 4l3.5 3.5L12 11"],
  search: ["M9 3.5a5.5 5.5 0 1 0 0 11 5.5 5.5 0 0 0 0-11z", "M13 13l4 4"],
  skipped: ["M5 5l5 5-5 5M11 5l5 5-5 5"],
  sun: ["M10 6.8a3.2 3.2 0 1 0 0 6.4 3.2 3.2 0 0 0 0-6.4z", "M10 2.5v1.2M10 16.3v1.2M2.5 10h1.2M16.3 10h1.2M4.7 4.7l.9.9M14.4 14.4l.9.9M15.3 4.7l-.9.9M5.6 14.4l-.9.9"],
  tick: ["M4.5 10.5l3.5 3.5 7.5-8"],
  trace: ["M3.5 14c1.8-7 5.5-9 7.2-7.2s-3.2 6.2-.9 7.4 4.7-2.6 6.7-7.7"],
  undo: ["M5 7.5h7a4 4 0 0 1 0 8H8M8 4L4.5 7.5 8 11"],
  voice: ["M3.5 8v4h2.8l4 3.2V4.8L6.3 8z", "M13 7.3a3.8 3.8 0 0 1 0 5.4M15.2 5a7 7 0 0 1 0 10"],
  voiceless: ["M3.5 8v4h2.8l4 3.2V4.8L6.3 8z", "M13 8l4 4M17 8l-4 4"],
  whole: ["M4 8V4h4M12 4h4v4M16 12v4h-4M8 16H4v-4"],
};

/** A small drawing that means nothing to a screen reader. */
export function icon(name) {
  return s("svg", { viewBox: "0 0 20 20", class: `drawn ${name}`, "aria-hidden": "true" }, ICONS[name].map((d) => s("path", { d })));
}

/** A button with an icon, a text, or both. */
export function button(text, { icon: name = "", kind = "", label = "", ...attributes } = {}) {
  const hidden = label && !text;
  return h(
    "button",
    { type: "button", class: kind, "aria-label": label || false, title: hidden ? label : false, ...attributes },
    name ? icon(name) : null,
    text ? h("span", {}, text) : null,
  );
}

/** Change what a button made above shows. */
export function relabel(element, { icon: name, label }) {
  element.replaceChildren(icon(name));
  element.setAttribute("aria-label", label);
  element.title = label;
}

/** A short list of keys: [[["Ctrl", "Z"], "undo"], …]. */
export function keyHelp(rows) {
  return h("dl", { class: "keys", "aria-label": "Keys" }, rows.flatMap(([keys, what]) => [h("dt", {}, keys.flatMap((key) => [h("kbd", {}, key), " "])), h("dd", {}, what)]));
}

/** Seconds for people: 7.5 s, 1:05 min. */
export function clock(seconds) {
  const tenths = Math.round(seconds * 10);
  if (tenths < 600) return `${(tenths / 10).toFixed(1)} s`;
  const whole = Math.round(seconds);
  return `${Math.floor(whole / 60)}:${String(whole % 60).padStart(2, "0")} min`;
}

/** What the server says, as a sentence; commands stay as they are. */
export function sentence(text) {
  if (!text || /^(pip|saywhere) /.test(text)) return text;
  return text[0].toUpperCase() + text.slice(1) + (/[\p{L}\p{N})]$/u.test(text) ? "." : "");
}

/** 1 stroke, 2 strokes. */
export const counted = (n, noun) => `${n} ${noun}${n === 1 ? "" : "s"}`;

export const calmMotion = () => matchMedia("(prefers-reduced-motion: reduce)").matches;

/** Whether a key press is meant for a field of text. */
export const isTyping = (event) => event.target.closest?.("textarea, select, input:not([type=range], [type=checkbox], [type=radio])") != null;

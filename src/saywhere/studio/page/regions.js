/** The regions one can draw: as the API names them, and as they look on the photo. */

import { button, s } from "./dom.js";
import { maskOf } from "./masks.js";
import { bounds, strokes, whereabouts } from "./narrative.js";
import { announce } from "./notices.js";
import { LiveLine } from "./stage.js";

const round = (value) => Math.round(Math.min(1, Math.max(0, value)) * 1e5) / 1e5;
const SMALLEST = 0.004; // A box or a lasso smaller than this, in fractions, was a slip of the hand.

/** name: on the button. key: its letter. how: for those who use keys. build: line of [x, y, ms] → Region, or null. */
export const TOOLS = {
  trace: {
    name: "Trace", key: "t", how: "arrow keys move, Space puts the pen down and lifts it",
    build: (line) => ({ kind: "trace", points: line.map(([x, y, t]) => [round(x), round(y), Math.round((t - line[0][2]) * 10) / 1e4]), starts: [0] }),
  },
  box: {
    name: "Box", key: "b", how: "arrow keys move, Space sets one corner and then the other",
    build: (line) => {
      const [x1, y1, x2, y2] = bounds([line[0], line[line.length - 1]]).map(round);
      return x2 - x1 < SMALLEST || y2 - y1 < SMALLEST ? null : { kind: "box", xyxy: [x1, y1, x2, y2] };
    },
  },
  point: {
    name: "Point", key: "p", how: "arrow keys move, Space sets the point", tap: true,
    build: (line) => { const [x, y] = line[line.length - 1]; return { kind: "point", x: round(x), y: round(y) }; },
  },
  lasso: {
    name: "Lasso", key: "l", how: "arrow keys move, Space begins the outline and closes it",
    build: (line) => {
      const points = line.map(([x, y]) => [round(x), round(y)]).filter(([x, y], i, all) => !i || x !== all[i - 1][0] || y !== all[i - 1][1]);
      const [x1, y1, x2, y2] = bounds(points);
      return points.length < 3 || x2 - x1 < SMALLEST || y2 - y1 < SMALLEST ? null : { kind: "polygon", points };
    },
  },
};

/** The box around a region. */
export function boundsOf(region) {
  if (region.kind === "box") return region.xyxy;
  if (region.kind === "point") return [region.x, region.y, region.x, region.y];
  if (region.kind === "boxes") return bounds(region.boxes.flatMap(([x1, y1, x2, y2]) => [[x1, y1], [x2, y2]]));
  if (region.kind === "mask") return maskOf(region).bounds;
  return region.kind === "whole" ? [0, 0, 1, 1] : bounds(region.points);
}

const KINDS = { polygon: "lasso", mask: "cut-out" };

export function placeOf(region) {
  return region.kind === "whole" ? "whole photo" : `${KINDS[region.kind] ?? region.kind}, ${whereabouts(boundsOf(region))}`;
}

/** Its shape, once white beneath and once in colour. */
export function shapes(stage, region) {
  if (region.kind === "whole") return [stage.rect([0.004, 0.005, 0.996, 0.995], { class: "shape whole" })];
  if (region.kind === "mask") return [stage.picture(maskOf(region).url, { class: "cut" })];
  const boxes = region.kind === "box" ? [region.xyxy] : region.boxes;
  if (boxes) return boxes.flatMap((box) => ["shape under", "shape"].map((kind) => stage.rect(box, { class: kind })));
  if (region.kind === "trace") return ["shape open under", "shape open"].map((kind) => s("path", { class: kind, d: strokes(region).map((line) => stage.path(line)).join("") }));
  const data = region.kind === "point" ? stage.path([[region.x, region.y]]) : `${stage.path(region.points)}Z`;
  const kind = region.kind === "point" ? "shape dot" : "shape";
  return [`${kind} under`, kind].map((name) => s("path", { class: name, d: data }));
}

/** A button for each way to draw. choose: called with its id. */
export const toolButtons = (choose) => Object.entries(TOOLS).map(([id, { name, key }]) =>
  button(name, { kind: "tool", icon: id, "aria-pressed": "false", "aria-keyshortcuts": key, "data-tool": id, title: `${name} (${key})`, onclick: () => choose(id) }));

/** A hand for the stage that draws one region with a tool. sketch: the layer it draws in. done: called with the region. */
export function drawingHand(stage, sketch, id, done) {
  const tool = TOOLS[id];
  let live = null, line = [];
  const begin = () => { sketch.replaceChildren(); live = id === "box" ? null : new LiveLine(stage, sketch); };
  const add = (x, y, t) => {
    line.push([x, y, t]);
    if (live) live.add([x, y]);
    else sketch.replaceChildren(stage.rect(boundsOf({ points: [line[0], [x, y]] }), { class: "shape" }));
  };
  const end = () => { line = []; sketch.replaceChildren(); };
  return {
    name: tool.name, how: tool.how, tap: Boolean(tool.tap),
    down: (x, y, t) => { begin(); add(x, y, t); },
    move: add,
    up: (x, y, t) => {
      add(x, y, t);
      const region = tool.build(line);
      end();
      if (region) done(region); else announce(`Too small for a ${tool.name.toLowerCase()}`);
    },
    cancel: end,
  };
}

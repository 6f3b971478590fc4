/** The geometry of a narrative: strokes in time, and where its words are. Positions are fractions of the photo. */

/** Words whose time is less sure than this should be looked at. The same number is DOUBTFUL in language/speech.py. */
const DOUBTFUL = 0.7;
export const doubtful = (word) => word.confidence != null && word.confidence < DOUBTFUL;

/** [from, to) of every pen-down stroke in trace.points. */
export function strokes({ points, starts }) {
  return starts.map((start, i) => points.slice(start, starts[i + 1] ?? points.length)).filter((stroke) => stroke.length);
}

/** Where the pointer was on one stroke, at a time inside it. */
function onStroke(stroke, time) {
  let low = 0, high = stroke.length - 1;
  while (high - low > 1) {
    const middle = (low + high) >> 1;
    if (stroke[middle][2] <= time) low = middle; else high = middle;
  }
  const [a, b] = [stroke[low], stroke[high]];
  const share = b[2] > a[2] ? Math.min(1, Math.max(0, (time - a[2]) / (b[2] - a[2]))) : 0;
  return [a[0] + share * (b[0] - a[0]), a[1] + share * (b[1] - a[1]), time];
}

const firstTime = (stroke) => stroke[0][2];
const lastTime = (stroke) => stroke[stroke.length - 1][2];

/** Where the pointer was, or null while the pen was up. */
export function positionAt(lines, time) {
  const stroke = lines.find((line) => firstTime(line) <= time && time <= lastTime(line));
  return stroke ? onStroke(stroke, time) : null;
}

/** The parts of the strokes between two times, ends included. */
export function between(lines, from, to) {
  const parts = [];
  for (const line of lines) {
    const a = Math.max(from, firstTime(line)), b = Math.min(to, lastTime(line));
    if (a <= b) parts.push([onStroke(line, a), ...line.filter(([, , t]) => t > a && t < b), onStroke(line, b)]);
  }
  return parts;
}

/** First and last moment of words and trace; [0, 0] if there is neither. */
export function span({ words, trace }) {
  const times = [...words.flatMap((word) => [word.start_s, word.end_s]), ...trace.points.map((point) => point[2])];
  return times.length ? [Math.min(0, times.reduce((a, b) => Math.min(a, b))), times.reduce((a, b) => Math.max(a, b))] : [0, 0];
}

/** One box [x1, y1, x2, y2] or null for each word: what the narrative says, or where the pointer was meanwhile. */
export function wordBoxes(narrative) {
  if (narrative.boxes?.length) return narrative.words.map((_, i) => narrative.boxes[i] ?? null);
  const lines = strokes(narrative.trace);
  return narrative.words.map((word) => bounds(between(lines, word.start_s, word.end_s).flat()));
}

/** The box around points, or null if there are none. */
export function bounds(points) {
  if (!points.length) return null;
  const xs = points.map((point) => point[0]), ys = points.map((point) => point[1]);
  const least = (values) => values.reduce((a, b) => Math.min(a, b)), most = (values) => values.reduce((a, b) => Math.max(a, b));
  return [least(xs), least(ys), most(xs), most(ys)];
}

/** "top left", for those who do not see it. */
export function whereabouts([x1, y1, x2, y2]) {
  const third = (at, names) => names[Math.min(2, Math.max(0, Math.floor(3 * at)))];
  const place = `${third((y1 + y2) / 2, ["top", "middle", "bottom"])} ${third((x1 + x2) / 2, ["left", "centre", "right"])}`;
  return place === "middle centre" ? "centre" : place;
}

/** How far apart pieces of one colour may be, and how many there are at most. */
const PIECE_S = 0.1, MOST_PIECES = 240;

/** The trace cut into short lines of one colour: [{from, line, stroke}], from in seconds, stroke: which line it is of. */
export function pieces(lines, [start, end]) {
  const step = Math.max(PIECE_S, (end - start) / MOST_PIECES);
  const cut = [];
  for (const [stroke, line] of lines.entries()) {
    let piece = [line[0]];
    for (const point of line.slice(1)) {
      piece.push(point);
      if (point[2] - piece[0][2] >= step) { cut.push({ from: piece[0][2], line: piece, stroke }); piece = [point]; }
    }
    if (piece.length > 1 || line.length === 1) cut.push({ from: piece[0][2], line: piece, stroke });
  }
  return cut;
}

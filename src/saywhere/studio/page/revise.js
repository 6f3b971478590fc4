/**
 * Changes to a narrative, as values: each function gives something new and leaves what it was given as it was.
 *
 * Points are [x, y, t]; what stands behind the time, such as the frame of a video, goes with them.
 */

const LEAST_S = 0.05, USUAL_S = 0.3; // Of a word that is put between others.
const MOST_COMPARED = 1e6;
export const round = (value, places) => Math.round(value * 10 ** places) / 10 ** places;

const plain = (word) => word.toLowerCase().replace(/[^\p{L}\p{N}]/gu, "") || word;

/** Words as they are kept. heard: one as it came; how sure its time is stays with it as long as nobody changes it. */
export const said = (words) => words.map(({ text, start_s, end_s, heard }) => {
  const same = heard && heard.text === text && heard.start_s === start_s && heard.end_s === end_s;
  return { text, start_s, end_s, confidence: same ? heard.confidence : null };
});

/** Pairs [i, j] of the words that two lists share, in order. */
export function shared(before, after) {
  const [a, b] = [before.map(plain), after.map(plain)];
  let from = 0, cut = 0;
  while (from < a.length && from < b.length && a[from] === b[from]) from += 1;
  while (cut < a.length - from && cut < b.length - from && a[a.length - 1 - cut] === b[b.length - 1 - cut]) cut += 1;
  const pairs = Array.from({ length: from }, (_, i) => [i, i]);
  pairs.push(...longest(a.slice(from, a.length - cut), b.slice(from, b.length - cut)).map(([i, j]) => [from + i, from + j]));
  for (let k = cut; k > 0; k -= 1) pairs.push([a.length - k, b.length - k]);
  return pairs;
}

/** The longest common subsequence, as pairs. Of lists too long to compare, none. */
function longest(a, b) {
  if (!a.length || !b.length || a.length * b.length > MOST_COMPARED) return [];
  const best = Array.from({ length: a.length + 1 }, () => new Uint16Array(b.length + 1));
  for (let i = a.length - 1; i >= 0; i -= 1) {
    for (let j = b.length - 1; j >= 0; j -= 1) best[i][j] = a[i] === b[j] ? best[i + 1][j + 1] + 1 : Math.max(best[i + 1][j], best[i][j + 1]);
  }
  const pairs = [];
  for (let i = 0, j = 0; i < a.length && j < b.length;) {
    if (a[i] === b[j]) pairs.push([i++, j++]);
    else if (best[i + 1][j] >= best[i][j + 1]) i += 1;
    else j += 1;
  }
  return pairs;
}

/**
 * The words of a corrected text: those that stay keep their times and boxes, one that was corrected takes the place of
 * what it stands for, and what is new lies between its neighbours. Words without times stay so.
 */
export function reworded(words, text) {
  const texts = text.split(/\s+/).filter(Boolean);
  if (!words.length) return [];
  const found = [];
  let [i, j] = [0, 0];
  for (const [a, b] of [...shared(words.map((word) => word.text), texts), [words.length, texts.length]]) {
    place(found, texts.slice(j, b), words.slice(i, a), words[a]);
    if (a < words.length) found.push({ ...words[a], text: texts[b] });
    [i, j] = [a + 1, b + 1];
  }
  return found;
}

/** Put texts after the words found so far, where `old` was; next: the word after them, if there is one. */
function place(found, texts, old, next) {
  if (texts.length === old.length) { found.push(...texts.map((text, k) => ({ ...old[k], text }))); return; }
  if (!texts.length) return;
  const [from, to] = old.length ? [old[0].start_s, Math.max(...old.map((word) => word.end_s))] : gap(found, texts.length, next);
  const letters = texts.reduce((sum, text) => sum + text.length, 0);
  let before = 0;
  for (const text of texts) {
    const at = (n) => round(from + ((to - from) * n) / letters, 4);
    found.push({ text, start_s: at(before), end_s: at(before + text.length), box: null });
    before += text.length;
  }
}

/** The words of a text, each as long as its letters, over a time that is at least as long as they usually take. */
export function spread(text, start, to) {
  const texts = text.split(/\s+/).filter(Boolean), found = [], from = Math.max(0, start);
  const until = Math.max(to, from + USUAL_S * texts.length);
  if (texts.length === 1) return [{ text: texts[0], start_s: from, end_s: until, box: null }];
  place(found, texts, [{ start_s: from, end_s: until }]);
  return found;
}

/** Room for n more words. Where there is none, the word before gives half of its own. */
function gap(found, n, next) {
  const last = found[found.length - 1];
  const to = next ? next.start_s : last.end_s + USUAL_S * n;
  const from = last ? Math.min(last.end_s, to) : Math.max(0, to - USUAL_S * n);
  if (!last || to - from >= LEAST_S * n) return [from, to];
  const half = round((last.start_s + from) / 2, 4);
  found[found.length - 1] = { ...last, end_s: half };
  return [half, Math.max(half, to)];
}

/** Words with another time for one of them; it cannot overtake its neighbours. */
export function retimed(words, i, start, end) {
  const least = words[i - 1]?.start_s ?? 0, most = words[i + 1]?.start_s ?? Infinity;
  const start_s = round(Math.min(Math.max(start, least), most), 3);
  return words.map((word, k) => (k === i ? { ...word, start_s, end_s: round(Math.max(start_s, end), 3) } : word));
}

/** Strokes as the API has them. */
export function joined(lines) {
  const starts = [];
  let n = 0;
  for (const line of lines) { starts.push(n); n += line.length; }
  return { points: lines.flat().map(([x, y, t]) => [x, y, t]), starts };
}

const first = (line) => line[0][2], last = (line) => line[line.length - 1][2];

/** Strokes without what was drawn between two times, ends included; one that goes on after it becomes two. */
export function without(lines, from, to) {
  return lines.flatMap((line) => [line.filter(([, , t]) => t < from), line.filter(([, , t]) => t > to)]).filter((line) => line.length);
}

/** Strokes with `drawn`, its times in any unit, in place of all that was drawn between two times. */
export function redrawn(lines, from, to, drawn) {
  const [a, b] = [first(drawn), last(drawn)];
  const at = (t) => (b > a ? from + ((t - a) / (b - a)) * (to - from) : from);
  const line = drawn.map(([x, y, t, ...more]) => [round(x, 5), round(y, 5), at(t), ...more]);
  return [...without(lines, from, to), line].sort((one, other) => first(one) - first(other));
}

/** Strokes with one of them elsewhere on the photo. */
export const shifted = (lines, i, dx, dy) =>
  lines.map((line, k) => (k === i ? line.map(([x, y, t, ...more]) => [round(x + dx, 5), round(y + dy, 5), t, ...more]) : line));

/** Strokes with one of them at another time; it cannot overtake its neighbours. */
export function delayed(lines, i, start) {
  const line = lines[i];
  const least = i ? last(lines[i - 1]) : 0, most = i + 1 < lines.length ? first(lines[i + 1]) - (last(line) - first(line)) : Infinity;
  const by = Math.max(least, Math.min(start, most)) - first(line);
  const to = i + 1 < lines.length ? first(lines[i + 1]) : Infinity;
  // Sums of fractions may be a hair beyond the neighbours.
  return lines.map((one, k) => (k === i ? one.map(([x, y, t, ...more]) => [x, y, Math.min(to, Math.max(least, round(t + by, 6))), ...more]) : one));
}

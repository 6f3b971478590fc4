/** One recording while it is made: points, keys and sound on one clock, kept safe every second. */

import * as drafts from "./drafts.js";
import { usual } from "./languages.js";

const KEEP_MS = 1000;
const PINCH_S = 1; // Between its two fingers, at most.
const round = (value, places) => Math.round(value * 10 ** places) / 10 ** places;

export class Take {
  /** onTrouble: told once if this browser cannot keep the recording. */
  constructor(photo, annotator, microphone, onTrouble) {
    this.microphone = microphone;
    this.onTrouble = onTrouble;
    this.draft = {
      id: drafts.newId(), photo: photo.id, photoName: photo.name, created: new Date().toISOString(), annotator,
      text: "", typed: "", language: usual(), keys: [], starts: [], duration_s: 0, rate: microphone ? microphone.rate : 0,
    };
    this.points = [];
    this.sound = [];
    this.keptPoints = 0;
    this.keptSound = 0;
    this.pieces = 0;
    this.stale = false; // Whether pieces hold what was retracted.
    this.writing = Promise.resolve();
    this.release = drafts.hold(this.draft.id);
  }

  start() {
    this.timer = setInterval(() => this.keep(), KEEP_MS);
    this.microphone?.start((samples) => this.sound.push(samples));
    this.began = performance.now();
  }

  /** Seconds since the start, of a moment in ms as performance.now(). */
  since(moment) {
    return Math.max(0, (moment - this.began) / 1000);
  }

  /** The pen touches: a stroke begins. */
  down(x, y, moment) {
    this.draft.starts.push(this.points.length);
    this.add(x, y, moment);
  }

  add(x, y, moment) {
    const last = this.points.length ? this.points[this.points.length - 1][2] : 0;
    this.points.push([round(x, 5), round(y, 5), Math.max(last, round(this.since(moment), 4))]);
  }

  /** Forget the last stroke, unless it is too old to be the first finger of two: whether it is gone. */
  retract() {
    const start = this.draft.starts[this.draft.starts.length - 1];
    if (start === undefined || this.since(performance.now()) - this.points[start][2] > PINCH_S) return false;
    this.draft.starts.pop();
    this.points.splice(start);
    this.stale ||= start < this.keptPoints;
    return true;
  }

  typed(text, moment) {
    this.draft.text = this.draft.typed = text;
    this.draft.keys.push({ t: round(this.since(moment), 4), text_length: [...text].length }); // Characters, not UTF-16 units.
  }

  /** Write what is new. now: how long it lasts so far, as performance.now(). Pieces go one after the other, so that their order is the order of time. */
  keep(now = performance.now()) {
    const write = this.stale ? drafts.rewrite : drafts.keep;
    if (this.stale) this.keptPoints = this.keptSound = 0;
    this.stale = false;
    const points = this.points.slice(this.keptPoints), sound = this.sound.slice(this.keptSound);
    this.keptPoints = this.points.length;
    this.keptSound = this.sound.length;
    this.draft.duration_s = this.since(now);
    const piece = { n: this.pieces, points, sound };
    this.pieces += 1;
    const draft = structuredClone(this.draft);
    this.writing = this.writing.then(() => write(draft, piece)).catch((error) => {
      this.onTrouble(error);
      this.onTrouble = () => {};
    });
    return this.writing;
  }

  /** End it and give it whole: the draft with all points and all sound. */
  async stop() {
    clearInterval(this.timer);
    const ended = performance.now();
    await this.microphone?.stop();
    await this.keep(ended);
    return { ...this.draft, points: this.points, sound: this.sound, release: this.release };
  }
}

/** Take the last stroke away, to be put back by `redoStroke`: its points, or null if there is none. */
export function undoStroke(recording) {
  if (!recording.starts.length) return null;
  const stroke = recording.points.splice(recording.starts.pop());
  recording.undone.push(stroke);
  return stroke;
}

/** Put back the stroke that was taken away last: its points, or null if there is none. */
export function redoStroke(recording) {
  const stroke = recording.undone.pop();
  if (!stroke) return null;
  recording.starts.push(recording.points.length);
  recording.points.push(...stroke);
  return stroke;
}

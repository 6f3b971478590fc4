/** A player whose strokes lie on several frames of a video. */

import { Player } from "./player.js";

/** The frame that was pointed at last is in sight. */
export class FilmPlayer extends Player {
  /** show: called with the number of a frame when that comes into sight. */
  constructor(stage, show) {
    super(stage);
    this.show = show;
  }

  clear(silence) {
    super.clear(silence);
    this.inView = null;
  }

  load(actor, how) {
    super.load(actor, how);
    this.look(this.frameAt(this.time));
  }

  frameAt(time) {
    const begun = this.lines.filter((line) => line[0][2] <= time).length;
    return this.narrative.stroke_frames[Math.max(0, begun - 1)] ?? 0;
  }

  inSight() { return this.lines.filter((_, i) => this.narrative.stroke_frames[i] === this.inView); }

  /** Bring a frame into sight, with what was drawn on it. */
  look(frame) {
    if (frame === this.inView) return;
    this.inView = frame;
    const { stroke_frames: strokes, word_frames: words } = this.narrative;
    this.ghosts.forEach((path, i) => path.classList.toggle("elsewhere", strokes[i] !== frame));
    for (const { path, stroke } of this.pieces) path.classList.toggle("elsewhere", strokes[stroke] !== frame);
    this.rects.forEach((rect, i) => rect?.classList.toggle("elsewhere", words[i] !== frame));
    this.show(frame);
  }

  light(index) {
    const frame = index === null ? null : this.narrative.word_frames[index];
    if (frame !== null && this.frame === null) this.look(frame);
    super.light(index);
  }

  at(time) {
    super.at(time);
    this.look(this.frameAt(this.time));
  }

  /** One frame with all that was drawn on it, at the moment when it was first pointed at. */
  choose(frame) {
    this.pause();
    const first = this.lines.find((_, i) => this.narrative.stroke_frames[i] === frame);
    if (first) this.seek(first[0][2]);
    this.showWhole();
    this.look(frame);
  }
}

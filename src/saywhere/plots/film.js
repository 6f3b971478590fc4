
/** A narrative over the frames of a video, with its voice: while that is heard, it is the clock. */
class Film extends Narrative {
  constructor(article) {
    super(article);
    this.frames = [...article.querySelectorAll(".frame, .missing[data-frame]")];
    this.thumbs = [...article.querySelectorAll(".strip button")];
    this.sound = article.querySelector("audio");
    for (const thumb of this.thumbs) thumb.addEventListener("click", () => this.choose(Number(thumb.dataset.frame)));
    this.speed.addEventListener("change", () => { if (this.sound) this.sound.playbackRate = Number(this.speed.value); });
    this.sound?.addEventListener("loadedmetadata", () => this.lengthen(this.sound.duration));
    if (this.sound?.readyState >= 1) this.lengthen(this.sound.duration);
    this.showFrame(this.frameAt(this.time));
    this.tell();
  }

  /** A voice may go on after the last word. */
  lengthen(seconds) {
    if (!Number.isFinite(seconds) || seconds <= this.span[1]) return;
    this.span[1] = seconds;
    this.scrub.max = seconds;
    this.tell();
  }

  /** The frame that was pointed at last; before all pointing, the first. */
  frameAt(time) {
    const begun = this.strokes.filter((stroke) => firstTime(stroke) <= time).length;
    return this.strokeFrames[Math.max(0, begun - 1)] ?? 0;
  }

  showFrame(index) {
    this.inView = index;
    for (const element of this.frames) {
      const here = Number(element.dataset.frame) === index;
      if (element.classList.contains("frame")) element.classList.toggle("shown", here); else element.hidden = !here;
    }
    for (const thumb of this.thumbs) {
      if (Number(thumb.dataset.frame) === index) thumb.setAttribute("aria-current", "true"); else thumb.removeAttribute("aria-current");
    }
  }

  inSight() { return this.strokes.filter((_, i) => this.strokeFrames[i] === this.inView); }

  /** Look at one frame with all that was drawn on it, and go to when it was first pointed at. */
  choose(index) {
    this.stop();
    this.pinned = null;
    this.light(null);
    this.showAll();
    this.showFrame(index);
    const first = this.strokes.find((_, i) => this.strokeFrames[i] === index);
    if (first) { this.time = firstTime(first); this.tell(); }
  }

  light(index) {
    if (index !== null && this.wordFrames[index] !== null && this.frame === null) this.showFrame(this.wordFrames[index]);
    super.light(index);
  }

  show(time) {
    super.show(time);
    this.showFrame(this.frameAt(this.time));
  }

  seek(time) {
    if (this.sound && time >= 0) this.sound.currentTime = time;
    this.show(time);
  }

  start() {
    super.start();
    if (this.time >= 0) this.speak(this.time);
  }

  speak(time) {
    if (!this.sound || time >= (this.sound.duration || Infinity)) return;
    this.sound.currentTime = time;
    this.sound.playbackRate = Number(this.speed.value);
    this.sound.play().catch((error) => { this.spoken.textContent = `The voice cannot be played: ${error.message}`; });
  }

  advance(passed) {
    const { sound } = this;
    if (sound && !sound.paused && sound.readyState >= 2) return sound.currentTime;
    const time = super.advance(passed);
    if (this.time < 0 && time >= 0) this.speak(time);
    return time;
  }

  stop() {
    super.stop();
    this.sound?.pause();
  }
}

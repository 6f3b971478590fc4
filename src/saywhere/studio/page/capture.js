/** Runs in the audio thread: hands on what the microphone hears, with the frame at which each piece begins. */

const PIECE = 2048;

class Capture extends AudioWorkletProcessor {
  constructor() {
    super();
    this.samples = new Float32Array(PIECE);
    this.held = 0;
    this.first = 0;
    this.port.onmessage = () => { // Asked for the rest: what is held, then a sign that this was all.
      this.handOn();
      this.port.postMessage(null);
    };
  }

  handOn() {
    if (this.held) this.port.postMessage({ frame: this.first, samples: this.samples.slice(0, this.held) });
    this.held = 0;
  }

  process([input]) {
    if (!input.length) { // A device that pauses: the frame of the next piece tells for how long.
      this.handOn();
      return true;
    }
    if (this.held === 0) this.first = currentFrame;
    this.samples.set(input[0], this.held);
    this.held += input[0].length;
    if (this.held >= PIECE) this.handOn();
    return true;
  }
}

registerProcessor("capture", Capture);

/** Runs in the audio thread: hands on what the microphone hears, with the frame at which each piece begins. */

const PIECE = 2048;

class Capture extends AudioWorkletProcessor {
  constructor() {
    super();
    this.samples = new Float32Array(PIECE);
    this.held = 0;
    this.first = 0;
  }

  process([input]) {
    if (!input.length) return true;
    if (this.held === 0) this.first = currentFrame;
    this.samples.set(input[0], this.held);
    this.held += input[0].length;
    if (this.held >= PIECE) {
      this.port.postMessage({ frame: this.first, samples: this.samples.slice(0, this.held) });
      this.held = 0;
    }
    return true;
  }
}

registerProcessor("capture", Capture);

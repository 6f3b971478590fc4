/** What a finger on a photo meets: coarser things first, finer ones and details for who stays. It only knows boxes. */

const EDGES = [["Left", (x) => x < 0], ["Right", (x) => x > 1], ["Top", (_, y) => y < 0], ["Bottom", (_, y) => y > 1]];
export const WAY = { left: [-1, 0], right: [1, 0], above: [0, -1], below: [0, 1] };
const STRIDE = 0.01;
export const NOTHING = "Nothing sure here.";

const area = ([x1, y1, x2, y2]) => (x2 - x1) * (y2 - y1);
const sentence = (name) => `${name[0].toUpperCase()}${name.slice(1)}.`;

export class Finger {
  /** things: [{name, box, about, neighbours}], as the server describes them. */
  constructor(things) {
    this.things = things;
    this.lift();
  }

  /** Nowhere: the next touch begins anew. */
  lift() {
    this.path = null;
    this.edge = "";
    this.here = -1;
    this.finer = [];
  }

  /** The numbers of the things at a place, the largest first. */
  at(x, y) {
    const inside = ({ box: [x1, y1, x2, y2] }) => x1 <= x && x <= x2 && y1 <= y && y <= y2;
    return this.things.map((_, i) => i).filter((i) => inside(this.things[i])).sort((a, b) => area(this.things[b].box) - area(this.things[a].box));
  }

  /** What to say at a place; empty if the finger meets nothing new. */
  move(x, y) {
    const edge = EDGES.find(([, beyond]) => beyond(x, y))?.[0] ?? "";
    if (edge) return this.meetEdge(edge);
    const path = this.at(x, y), before = this.path;
    if (before && !this.edge && path.join() === before.join()) return "";
    const fresh = path.filter((i) => this.edge || !before?.includes(i));
    Object.assign(this, { path, edge: "", here: path.at(-1) ?? -1, finer: fresh.slice(1) });
    if (!path.length) return NOTHING;
    return sentence(this.things[fresh[0] ?? this.here].name);
  }

  meetEdge(edge) {
    if (edge === this.edge) return "";
    Object.assign(this, { path: [], edge, here: -1, finer: [] });
    return `${edge} edge of the photo.`;
  }

  /** What to say to who stays: the finer things at this place, then all that there is to say of the finest. */
  details() {
    if (this.here < 0) return "";
    const finer = this.finer.map((i) => sentence(this.things[i].name));
    return [...finer, ...this.things[this.here].about].join(" ");
  }

  /** Go to a thing: its middle, and its name to be said. */
  goTo(i) {
    const { name, box: [x1, y1, x2, y2] } = this.things[i];
    const [x, y] = [(x1 + x2) / 2, (y1 + y2) / 2];
    Object.assign(this, { path: this.at(x, y), edge: "", here: i, finer: [] });
    return { x, y, says: sentence(name) };
  }

  /** The thing after or before this one, in the order in which people look; round and round. */
  next(step) {
    const count = this.things.length;
    if (!count) return null;
    return this.goTo(this.here < 0 ? (step > 0 ? 0 : count - 1) : (this.here + step + count) % count);
  }

  /** On to the next thing in a direction: from a thing to its neighbour, from elsewhere to what lies that way. */
  onward(direction, x, y) {
    if (this.here >= 0) {
      const neighbour = this.things[this.here].neighbours[direction];
      return neighbour === undefined ? null : this.goTo(neighbour);
    }
    const [dx, dy] = WAY[direction];
    for (let steps = 1; steps <= 1 / STRIDE; steps += 1) {
      const [found] = this.at(x + dx * steps * STRIDE, y + dy * steps * STRIDE);
      if (found !== undefined) return this.goTo(found);
    }
    return null;
  }
}

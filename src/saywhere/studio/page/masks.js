/** Masks: run lengths as in COCO's files, as pictures to lay over the photo. */

const INSIDE = [229, 122, 0, 115], EDGE = [255, 255, 255, 235];
const read = new WeakMap(); // Each mask is drawn once.

/** {url, bounds} of a mask {size: [rows, cols], counts}: a picture of it, and the box around it. */
export function maskOf(mask) {
  if (!read.has(mask)) read.set(mask, drawn(mask));
  return read.get(mask);
}

function drawn({ size: [rows, cols], counts }) {
  const inside = new Uint8Array(rows * cols); // Down the columns, as it comes.
  counts.reduce((start, count, i) => { if (i % 2) inside.fill(1, start, start + count); return start + count; }, 0);
  const at = (row, col) => row >= 0 && col >= 0 && row < rows && col < cols && inside[col * rows + row] === 1;
  const image = new ImageData(cols, rows);
  let [x1, y1, x2, y2] = [cols, rows, 0, 0];
  for (let col = 0; col < cols; col += 1) {
    for (let row = 0; row < rows; row += 1) {
      if (!at(row, col)) continue;
      const edge = !at(row - 1, col) || !at(row + 1, col) || !at(row, col - 1) || !at(row, col + 1);
      image.data.set(edge ? EDGE : INSIDE, 4 * (row * cols + col));
      [x1, y1, x2, y2] = [Math.min(x1, col), Math.min(y1, row), Math.max(x2, col + 1), Math.max(y2, row + 1)];
    }
  }
  const canvas = Object.assign(document.createElement("canvas"), { width: cols, height: rows });
  canvas.getContext("2d").putImageData(image, 0, 0);
  return { url: canvas.toDataURL(), bounds: [x1 / cols, y1 / rows, x2 / cols, y2 / rows] };
}

// Draws the GPUs of a group on a canvas. Large cells have three bars: cores, memory, measured use; small ones the shade
// of what is allocated. Trouble has a shape of its own besides its colour, as long as there is room for one.
import { color_of } from '../theme.js';
import { card_flags, node_flags } from './flags.js';
import { corner_of } from './layout.js';

const names = ['paper', 'line', 'quiet', 'ink', 'bad', 'level_0', 'level_1', 'level_2', 'level_3', 'level_4', 'cores_fill', 'memory_fill', 'measured'];

/// The colours of the theme by name, for `paint`.
export const read_colors = () => Object.fromEntries(names.map((name) => [name, color_of(`--${name}`)]));

/// The smallest pitch at which a cell has bars.
export const smallest_with_bars = 9;
const smallest_with_frame = 13;

function allocated(card) {
  return Math.max(card[3] / 100, card[1] ? card[4] / card[1] : 0);
}

function bar(context, x, y, width, height, part, color) {
  if (part <= 0) return;
  context.fillStyle = color;
  context.fillRect(x, y, Math.max(1, width * Math.min(1, part)), height);
}

function stripes(context, x, y, size, color) {
  context.save();
  context.beginPath();
  context.rect(x, y, size, size);
  context.clip();
  context.strokeStyle = color;
  context.lineWidth = 1.5;
  context.beginPath();
  for (let start = -size; start < size; start += 5) {
    context.moveTo(x + start, y + size);
    context.lineTo(x + start + size, y);
  }
  context.stroke();
  context.restore();
}

function frame(context, x, y, size, color, width) {
  context.strokeStyle = color;
  context.lineWidth = width;
  context.strokeRect(x + width / 2, y + width / 2, size - width, size - width);
}

function draw_large(context, x, y, size, card, measured, is_served, colors) {
  const [, mib, flags, cores, used] = card;
  context.fillStyle = is_served ? colors.level_0 : colors.paper;
  context.fillRect(x, y, size, size);
  if (flags & card_flags.cordoned) stripes(context, x, y, size, colors.quiet);
  const has_frame = size >= smallest_with_frame;
  const [inset, gap] = has_frame ? [2, 1] : [0, 0];
  const inner = size - 2 * inset;
  const third = Math.max(2, Math.floor((inner - 2 * gap) * 0.38));
  bar(context, x + inset, y + inset, inner, third, cores / 100, colors.cores_fill);
  bar(context, x + inset, y + inset + gap + third, inner, third, mib ? used / mib : 0, colors.memory_fill);
  const top = y + inset + 2 * (gap + third);
  bar(context, x + inset, top, inner, y + size - inset - top, measured / 100, colors.measured);
  if (has_frame || !is_served) frame(context, x, y, size, colors.line, 1);
  if (flags & card_flags.over) frame(context, x, y, size, colors.bad, has_frame ? 2 : 1);
  if (flags & card_flags.sick) {
    const corner = has_frame ? 4 : 1;
    frame(context, x, y, size, colors.bad, has_frame ? 2 : 1);
    context.beginPath();
    context.lineWidth = has_frame ? 2.5 : 2;
    context.moveTo(x + corner, y + corner);
    context.lineTo(x + size - corner, y + size - corner);
    context.moveTo(x + size - corner, y + corner);
    context.lineTo(x + corner, y + size - corner);
    context.stroke();
  }
}

/// The name of the colour of a small cell.
function shade_of(card, is_served, is_cordoned) {
  const flags = card[2];
  if (flags & (card_flags.sick | card_flags.over)) return 'bad';
  const use = allocated(card);
  if (use > 0) return `level_${Math.min(4, 1 + Math.floor(use * 3))}`;
  if (is_cordoned || flags & card_flags.cordoned) return 'quiet';
  return is_served ? 'level_0' : 'line';
}

/// `measured(name)`: percent per card of a node, or undefined.
export function paint(canvas, group, grid, measured, colors) {
  const ratio = globalThis.devicePixelRatio || 1;
  const width = Math.max(1, grid.width);
  const height = Math.max(1, grid.height);
  canvas.width = Math.round(width * ratio);
  canvas.height = Math.round(height * ratio);
  canvas.style.width = `${width}px`;
  canvas.style.height = `${height}px`;
  const context = canvas.getContext('2d', { alpha: true });
  context.scale(ratio, ratio);
  const size = grid.pitch - (grid.pitch > 7 ? 2 : grid.pitch > 4 ? 1 : 0);
  const is_large = grid.pitch >= smallest_with_bars;
  const is_served = group.mode >= 0;
  const by_color = new Map(); // small cells, so that the colour changes some ten times and not 40,000 times
  group.nodes.forEach((node, index) => {
    const [name, , , flags, cards] = node;
    const use = is_large ? measured(name) : undefined;
    const start = corner_of(grid, { node: index, card: 0 });
    const is_cordoned = flags & node_flags.cordoned;
    cards.forEach((card, place) => {
      const x = start.x + place * grid.pitch;
      if (is_large) {
        draw_large(context, x, start.y, size, is_cordoned ? card.with(2, card[2] | card_flags.cordoned) : card, use?.[place] ?? 0, is_served, colors);
        return;
      }
      const shade = shade_of(card, is_served, is_cordoned);
      if (!by_color.has(shade)) by_color.set(shade, []);
      by_color.get(shade).push(x, start.y);
    });
    if (flags & node_flags.not_ready) {
      context.fillStyle = colors.bad;
      context.fillRect(start.x, start.y + size, cards.length * grid.pitch - 1, Math.max(1, Math.min(3, grid.row_step - size)));
    }
  });
  for (const [shade, corners] of by_color) {
    context.fillStyle = colors[shade];
    for (let index = 0; index < corners.length; index += 2) context.fillRect(corners[index], corners[index + 1], size, size);
  }
}

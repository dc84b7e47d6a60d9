// Where each GPU of the map is. Pure: the same nodes and the same room give the same places, so that a pointer can be
// turned into a GPU without asking the page.

import { card_flags, node_flags } from './flags.js';

const collator = new Intl.Collator('en', { numeric: true });
const trouble = node_flags.not_ready | node_flags.sick | node_flags.over | node_flags.refused | node_flags.old;

/// By the flags of a node: trouble comes first, then what is on its way, then what takes no pods.
export function rank_of(flags) {
  if (flags & trouble) return 0;
  if (flags & node_flags.changing) return 1;
  return flags & node_flags.cordoned ? 2 : 3;
}

/// The nodes with cards by model and mode: [{model, mode, nodes, cards, cores, unhealthy}]; `model` and `mode` are indexes
/// of the fleet, -1 none. A node of two models stands with its first.
export function groups_of({ nodes, models, modes }) {
  const groups = new Map();
  for (const node of nodes) {
    const [, mode, , , cards] = node;
    if (cards.length === 0) continue;
    const model = cards[0][0];
    const key = `${model} ${mode}`;
    if (!groups.has(key)) groups.set(key, { model, mode, nodes: [], cards: 0, cores: 0, unhealthy: 0, widest: 0 });
    const group = groups.get(key);
    group.nodes.push(node);
    group.cards += cards.length;
    group.widest = Math.max(group.widest, cards.length);
    for (const card of cards) {
      group.cores += card[3];
      if (card[2] & card_flags.sick) group.unhealthy += 1;
    }
  }
  const name_of = (names, index) => names[index] ?? '￿'; // what has no name comes last
  const sorted = [...groups.values()].sort((one, other) => (
    collator.compare(name_of(models, one.model), name_of(models, other.model)) ||
    collator.compare(name_of(modes, one.mode), name_of(modes, other.mode))));
  for (const group of sorted) {
    const places = new Map(group.nodes.map((node) => [node, rank_of(node[3])]));
    group.nodes.sort((one, other) => places.get(one) - places.get(other) || collator.compare(one[0], other[0]));
  }
  return sorted;
}

const largest = 32;
const smallest = 3;

/// The grid of one group at a pitch (pixels from one GPU to the next): places of nodes from left to right, from above.
function grid_of(group, pitch, width) {
  const gap = pitch >= 6 ? Math.max(3, Math.round(pitch * 0.3)) : 2;
  const step = group.widest * pitch + gap;
  const columns = Math.max(1, Math.floor((width + gap) / step));
  const rows = Math.ceil(group.nodes.length / columns);
  const row_step = pitch + (pitch >= 6 ? gap - 1 : 1);
  return { pitch, step, columns, rows, row_step, width: Math.min(columns, group.nodes.length) * step - gap, height: rows * row_step };
}

/// The largest pitch at which all groups fit into `height`, each at least `least` high, with grids in the order of `groups`.
export function layout_of(groups, width, height, least) {
  let grids = [];
  for (let pitch = largest; pitch >= smallest; pitch--) {
    grids = groups.map((group) => grid_of(group, pitch, width));
    if (grids.reduce((sum, grid) => sum + Math.max(least, grid.height), 0) <= height) break;
  }
  return grids;
}

/// {node, card}: places at a point of a group's grid; null: there is a gap, or nothing.
export function place_at(group, grid, x, y) {
  const column = Math.floor(x / grid.step);
  const row = Math.floor(y / grid.row_step);
  const node = row * grid.columns + column;
  if (x < 0 || y < 0 || column >= grid.columns || node >= group.nodes.length) return null;
  const card = Math.floor((x - column * grid.step) / grid.pitch);
  return card < group.nodes[node][4].length ? { node, card } : null;
}

/// The corner above and left of a GPU.
export function corner_of(grid, { node, card }) {
  return { x: (node % grid.columns) * grid.step + card * grid.pitch, y: Math.floor(node / grid.columns) * grid.row_step };
}

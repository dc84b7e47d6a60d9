// A card as a bar of its shares, with a line of text below, so that colour is never the only sign.
import { cores, memory, text, word } from '../language.js';
import { card_flags, node_flags } from './flags.js';

export { card_flags, node_flags };

export const names_of = (flags, sum) => Object.keys(flags).filter((name) => sum & flags[name]);

/// Words for what is to be known of a node. A change of mode that is stuck must not look like one that goes on.
export function states_of(flags, phase) {
  return names_of(node_flags, flags).map((flag) => text(flag === 'changing' && phase === 'Stuck' ? 'node_flag.stuck' : `node_flag.${flag}`));
}

/// How much of the card is given out, from 0 to 1 and above: of cores or memory, whichever is scarcer.
export function use_of({ memory_mib, cores: given, used_mib }) {
  return Math.max(given / 100, memory_mib ? used_mib / memory_mib : 0);
}

/// 0 free, then quarters, 4 all of it.
export const level_of = (use) => (use <= 0 ? 0 : Math.min(4, 1 + Math.floor(use * 3)));

/// One word of health. What counts most comes first.
export function health_of(flags) {
  if (flags & card_flags.sick) return 'sick';
  if (flags & card_flags.over) return 'over';
  if (flags & card_flags.cordoned) return 'cordoned';
  return flags & card_flags.unknown ? 'unknown' : 'ok';
}

/// What is written below the bar: use as percent, health as a sign, mode as its name.
function caption(card, coloring, mode) {
  if (coloring === 'health') return text(`health_sign.${health_of(card.flags)}`);
  if (coloring === 'mode') return mode;
  return `${Math.round(use_of(card) * 100)}`;
}

/// In words, for the tooltip. The view of the node says the same without a mouse.
export function describe(entry, models, namespaces) {
  const card = read_card(entry);
  const parts = [models[card.model] ?? text('unknown_model'), text('card.use', { cores: cores(card.cores), used: memory(card.used_mib),
    total: card.memory_mib ? memory(card.memory_mib) : '?' })];
  for (const name of names_of(card_flags, card.flags)) parts.push(text(`card_flag.${name}`));
  for (const [given, mib, namespace] of card.shares) {
    parts.push(text('card.share', { namespace: namespaces[namespace] ?? text('hidden_share'), cores: cores(given), memory: memory(mib) }));
  }
  return parts.join('\n');
}

/// A card of the fleet's answer as an object.
export function read_card([model, memory_mib, flags, given, used_mib, shares = []]) {
  return { model, memory_mib, flags, cores: given, used_mib, shares };
}

/// The shares from the left, as the stops of one gradient: a card is one element, whatever number of shares it has.
function shares_of({ shares, memory_mib }) {
  let end = 0;
  const stops = shares.map(([given, mib]) => {
    const start = end;
    end = Math.min(100, start + 100 * Math.max(given / 100, memory_mib ? mib / memory_mib : 0));
    return end < 100 ? `var(--fill) ${start}% calc(${end}% - 1px),#0000 0 ${end}%` : `var(--fill) ${start}% 100%`;
  });
  return stops.length ? `linear-gradient(90deg,${stops.join()},#0000 0)` : 'none';
}

/// `mode_index` is the mode's place among those of the fleet, -1 none. style.css draws the bar above the text.
export function Card({ card, coloring, mode, mode_index }) {
  const read = read_card(card);
  const style = coloring === 'mode' ? `mode_${mode_index < 0 ? 'none' : mode_index % 6}` : `level_${level_of(use_of(read))}`;
  return (
    <span class={`card ${style} health_${health_of(read.flags)}`} style={{ '--shares': shares_of(read) }}>
      {caption(read, coloring, word('mode_sign', mode))}
    </span>
  );
}

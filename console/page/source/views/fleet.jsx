// Every node as its cards, each card as its shares. Only rows in sight are elements; arrow keys move between rows.
import { Component } from 'preact';
import { useEffect, useLayoutEffect, useMemo, useRef, useState } from 'preact/hooks';

import { use_answer } from '../answers.js';
import { cores, number, percent, text, word } from '../language.js';
import { Card, card_flags, describe, health_of, node_flags, read_card, states_of, use_of } from '../parts/card.jsx';
import { Answer, Empty } from '../parts/state.jsx';
import { use_rows } from '../parts/window.js';
import { keep_settings, route_of } from '../router.js';

const row_height = 46; // pixels, as in style.css
const colorings = ['use', 'health', 'mode'];
const problems = Object.keys(node_flags).filter((name) => name !== 'cordoned').reduce((sum, name) => sum | node_flags[name], 0);

export function select_nodes({ nodes, modes }, { name, mode, only_problems }) {
  const part = name.trim().toLowerCase();
  return nodes.filter(([node, node_mode, , flags]) => (
    (!part || node.toLowerCase().includes(part)) &&
    (!mode || (mode === 'none' ? node_mode < 0 : modes[node_mode] === mode)) &&
    (!only_problems || flags & problems)));
}

export function sum_up(nodes) {
  const sum = { nodes: nodes.length, cards: 0, cores: 0, sick: 0, problems: 0 };
  for (const [, , , flags, cards] of nodes) {
    sum.cards += cards.length;
    if (flags & problems) sum.problems += 1;
    for (const card of cards) {
      sum.cores += card[3];
      if (card[2] & card_flags.sick) sum.sick += 1;
    }
  }
  return sum;
}

/// Drawn only when something of it changed: thousands of rows scroll by, and an answer makes all nodes anew. `names` are
/// the texts that a node names by index.
class Row extends Component {
  shouldComponentUpdate(next) {
    return ['index', 'coloring', 'is_active', 'drawing', 'names'].some((name) => next[name] !== this.props[name]) ||
      (next.node !== this.props.node && JSON.stringify(next.node) !== JSON.stringify(this.props.node));
  }
  render({ node, index, fleet, coloring, is_active }) {
    const [name, mode, phase, flags, cards] = node;
    const state = states_of(flags, fleet.phases[phase]);
    const shown_mode = mode < 0 ? '' : fleet.modes[mode];
    const given = cards.reduce((sum, card) => sum + use_of(read_card(card)), 0) / (cards.length || 1);
    return (
      <div role="row" aria-rowindex={index + 2} class="row" tabindex={is_active ? 0 : -1} data-index={index}
        style={{ top: `${index * row_height}px` }}>
        <span role="gridcell" class="name"><a href={route_of('node', name)} tabindex="-1">{name}</a></span>
        <span role="gridcell" class="mode">{mode < 0 ? text('mode_none') : word('mode', shown_mode)}</span>
        <span role="gridcell" class={`state ${flags & problems ? 'bad' : ''}`}>
          {state.length ? state.join(', ') : phase < 0 ? text('node_flag.ok') : word('phase', fleet.phases[phase])}
        </span>
        <span role="gridcell">
          <span class="cards" role="img"
            aria-label={text('row.cards', { cards: cards.length, use: percent(given), sick: cards.filter((card) => health_of(card[2]) === 'sick').length })}>
            {cards.map((card) => Card({ card, coloring, mode: shown_mode, mode_index: mode }))}
          </span>
        </span>
      </div>
    );
  }
}

function Legend({ coloring, modes }) {
  // Frames and hatching are there in every colouring, signs only in that of health.
  const marks = ['cordoned', 'over', 'sick'].map((name) => [`level_2 health_${name}`, text(`health.${name}`)]);
  const samples = {
    use: [...[0, 1, 2, 3, 4].map((level) => [`level_${level}`, text(`legend.use_${level}`)]), ...marks],
    health: ['ok', 'unknown', 'cordoned', 'over', 'sick'].map((name) => [`level_2 health_${name}`, `${text(`health_sign.${name}`)} ${text(`health.${name}`)}`]),
    mode: [...modes.map((mode, index) => [`mode_${index % 6}`, `${word('mode_sign', mode)} ${word('mode', mode)}`]), ['mode_none', text('mode_none')], ...marks],
  };
  return (
    <ul class="legend" aria-label={text('legend')}>
      {samples[coloring].map(([style, label]) => (
        <li key={label}><span class={`card sample ${style}`} />{label}</li>
      ))}
    </ul>
  );
}

export function Grid({ fleet, nodes, coloring, drawing }) {
  const [active, set_active] = useState(0);
  const to_focus = useRef(null);
  const { element, first, last, scroll_to } = use_rows(nodes.length, row_height);
  const current = Math.min(active, Math.max(0, nodes.length - 1));
  const names = useMemo(() => JSON.stringify([fleet.models, fleet.modes, fleet.phases, fleet.namespaces]), [fleet]);

  useLayoutEffect(() => {
    if (to_focus.current === null) return;
    element.current.querySelector(`[data-index="${to_focus.current}"]`)?.focus({ preventScroll: true });
    to_focus.current = null;
  });
  function on_key(event) {
    const page = Math.max(1, Math.floor(element.current.clientHeight / row_height) - 1);
    const target = { ArrowDown: current + 1, ArrowUp: current - 1, PageDown: current + page, PageUp: current - page, Home: 0,
      End: nodes.length - 1 }[event.key];
    if (event.key === 'Enter' && event.target.getAttribute('role') === 'row') location.hash = route_of('node', nodes[current][0]);
    if (target === undefined) return;
    event.preventDefault();
    const index = Math.max(0, Math.min(nodes.length - 1, target));
    to_focus.current = index;
    set_active(index);
    scroll_to(index);
  }
  // Rows have no listeners of their own: they come and go all the time.
  function on_focus(event) {
    if (event.target.getAttribute('role') === 'row') set_active(Number(event.target.dataset.index));
  }
  function on_pointer(event) {
    if (!event.target.classList.contains('card')) return;
    const [, , , , cards] = nodes[event.target.closest('.row').dataset.index];
    event.target.title = describe(cards[[...event.target.parentElement.children].indexOf(event.target)], fleet.models, fleet.namespaces);
  }
  // The active row stays an element when it is out of sight, so that the focus is not lost.
  const indexes = [];
  for (let index = first; index < last; index++) indexes.push(index);
  if (nodes.length && (current < first || current >= last)) indexes.push(current);
  return (
    <div class="fleet" role="grid" aria-label={text('view.fleet')} aria-rowcount={nodes.length + 1} aria-colcount="4" onKeyDown={on_key}>
      <div role="row" class="row head" aria-rowindex="1">
        {['node', 'mode', 'state', 'cards'].map((name) => (
          <span key={name} role="columnheader" class={name === 'node' ? 'name' : name}>
            {text(name === 'cards' ? `cards_by.${coloring}` : `column.${name}`)}
          </span>
        ))}
      </div>
      <div class="scroll" role="rowgroup" ref={element} onFocusIn={on_focus} onPointerOver={on_pointer}>
        <div class="room" role="presentation" style={{ height: `${nodes.length * row_height}px` }}>
          {indexes.map((index) => (
            <Row key={nodes[index][0]} node={nodes[index]} index={index} fleet={fleet} coloring={coloring} is_active={index === current}
              drawing={drawing} names={names} />
          ))}
        </div>
      </div>
    </div>
  );
}

export function Fleet({ on_refused, drawing, settings }) {
  const answer = use_answer('fleet', 'fleet', on_refused);
  const [filter, set_filter] = useState({ name: settings.name ?? '', mode: settings.mode ?? '', only_problems: settings.problems === '1' });
  const [coloring, set_coloring] = useState(colorings.includes(settings.color) ? settings.color : 'use');
  useEffect(() => {
    keep_settings({ name: filter.name, mode: filter.mode, problems: filter.only_problems ? '1' : '', color: coloring === 'use' ? '' : coloring });
  }, [filter, coloring]);
  const fleet = answer.body;
  const nodes = useMemo(() => (fleet ? select_nodes(fleet, filter) : []), [fleet, filter]);
  const sum = useMemo(() => sum_up(nodes), [nodes]);
  const change = (part) => set_filter({ ...filter, ...part });
  return (
    <section class="fill">
      <h1 tabindex="-1">{text('view.fleet')}</h1>
      <Answer answer={answer}>{() => (
        <>
          <div class="controls">
            <label>{text('filter.name')} <input type="search" value={filter.name} onInput={(event) => change({ name: event.target.value })} /></label>
            <label>{text('column.mode')} <select value={filter.mode} onChange={(event) => change({ mode: event.target.value })}>
              <option value="">{text('filter.all')}</option>
              {fleet.modes.map((mode) => <option key={mode} value={mode}>{word('mode', mode)}</option>)}
              <option value="none">{text('mode_none')}</option>
            </select></label>
            <label>
              <input type="checkbox" checked={filter.only_problems} onChange={(event) => change({ only_problems: event.target.checked })} />
              {' '}{text('filter.problems')}
            </label>
            <fieldset class="radios"><legend>{text('coloring')}</legend>
              {colorings.map((name) => (
                <label key={name}>
                  <input type="radio" name="coloring" value={name} checked={coloring === name} onChange={() => set_coloring(name)} />
                  {' '}{text(`coloring.${name}`)}
                </label>
              ))}
            </fieldset>
          </div>
          <p class="summary" role="status">
            {text('fleet.summary', { nodes: sum.nodes, cards: sum.cards, given: cores(sum.cores), sick: number(sum.sick), problems: sum.problems })}
            {fleet.total > fleet.offset + fleet.nodes.length && ` ${text('fleet.more', { shown: fleet.nodes.length, total: fleet.total })}`}
          </p>
          <Legend coloring={coloring} modes={fleet.modes} />
          {nodes.length ? <Grid fleet={fleet} nodes={nodes} coloring={coloring} drawing={drawing} />
            : <Empty>{text(fleet.nodes.length ? 'fleet.no_match' : 'fleet.empty')}</Empty>}
        </>
      )}</Answer>
    </section>
  );
}

// One cell per GPU, by model and mode. Canvases: 40,000 elements would be too many. A list beneath says the same to
// keyboards and screen readers, so that the map itself is one picture to them.
import { useLayoutEffect, useMemo, useRef, useState } from 'preact/hooks';

import { cores, number, percent, text, word } from '../language.js';
import { route_of } from '../router.js';
import { describe, states_of } from './card.jsx';
import { corner_of, layout_of, place_at } from './layout.js';
import { paint, read_colors, smallest_with_bars } from './paint.js';

const label_height = 40; // pixels, as in style.css
const row_gap = 8;

/// {ref, width}: the width of an element, measured again when it changes.
function use_width() {
  const ref = useRef(null);
  const [width, set_width] = useState(0);
  useLayoutEffect(() => {
    const measure = () => set_width(Math.floor(ref.current.clientWidth));
    measure();
    const observer = new ResizeObserver(measure);
    observer.observe(ref.current);
    return () => observer.disconnect();
  }, []);
  return { ref, width };
}

/// "A100-SXM4-80GB": every model here has its maker's name.
const short_model = (model) => model.replace(/^NVIDIA[- ]/, '');

function Group({ group, grid, fleet, measured, colors }) {
  const canvas = useRef(null);
  useLayoutEffect(() => { paint(canvas.current, group, grid, measured, colors); }, [group, grid, measured, colors]);
  const model = fleet.models[group.model];
  const mode = group.mode < 0 ? text('mode_none') : word('mode', fleet.modes[group.mode]);
  const use = percent(group.cores / 100 / group.cards);
  return (
    <figure class="group">
      <figcaption>
        <span class="group_name">{model ? short_model(model) : text('unknown_model')}
          {group.unhealthy > 0 && <strong class="bad_text"> ✕ {number(group.unhealthy)}</strong>}</span>
        <span class="group_sum" title={text('map.group_title')}>{text('map.group', { mode, cards: group.cards, use })}</span>
      </figcaption>
      <div class="cells"><canvas ref={canvas} /></div>
    </figure>
  );
}

/// What the pointer is on, in words.
function tooltip_of(fleet, node, card, measured) {
  const [name, mode, phase, flags, cards] = node;
  const state = states_of(flags, fleet.phases[phase]);
  const use = measured(name)?.[card] ?? -1;
  return [text('map.card', { node: name, card: String(card) }), describe(cards[card], fleet.models, fleet.namespaces),
    use >= 0 && text('map.measured', { use: percent(use / 100) }), mode < 0 ? text('map.no_mode') : word('mode', fleet.modes[mode]),
    state.length > 0 && state.join(', ')].filter(Boolean).join('\n');
}

export function GpuMap({ fleet, groups, measured, has_measured, drawing }) {
  const { ref, width } = use_width();
  const pointer = useRef(null); // {tip, ring}, moved without drawing the page
  const is_narrow = width < 640;
  const room = width - (is_narrow ? 2 : 272);
  const colors = useMemo(read_colors, [drawing]);
  const grids = useMemo(() => {
    if (width === 0) return [];
    const height = Math.min(900, Math.round(innerHeight * 0.62)) - groups.length * row_gap;
    const least = is_narrow ? 0 : label_height;
    return layout_of(groups, room, Math.max(is_narrow ? height * 2 : height, groups.length * least * 1.2), least);
  }, [groups, room, is_narrow]);

  function target_of(event) {
    if (event.target.tagName !== 'CANVAS') return null;
    const index = [...ref.current.querySelectorAll('canvas')].indexOf(event.target);
    const box = event.target.getBoundingClientRect();
    const place = place_at(groups[index], grids[index], event.clientX - box.left, event.clientY - box.top);
    return place && { place, box, node: groups[index].nodes[place.node], grid: grids[index] };
  }
  function on_move(event) {
    const target = target_of(event);
    const { tip, ring } = pointer.current;
    tip.hidden = ring.hidden = !target;
    if (!target) return;
    const { place, box, node, grid } = target;
    const corner = corner_of(grid, place);
    ring.style.transform = `translate(${box.left + corner.x - 2}px, ${box.top + corner.y - 2}px)`;
    ring.style.width = ring.style.height = `${grid.pitch + 2}px`;
    const words = tooltip_of(fleet, node, place.card, measured);
    if (tip.textContent !== words) tip.textContent = words;
    const is_right = event.clientX > innerWidth / 2;
    const is_low = event.clientY > innerHeight / 2;
    tip.style.transform = `translate(${event.clientX + (is_right ? -14 : 14)}px, ${event.clientY + (is_low ? -14 : 14)}px) ` +
      `translate(${is_right ? '-100%' : '0'}, ${is_low ? '-100%' : '0'})`;
  }
  const on_leave = () => { pointer.current.tip.hidden = pointer.current.ring.hidden = true; };
  function on_click(event) {
    const target = target_of(event);
    if (target) location.hash = route_of('node', target.node[0]);
  }
  const sums = groups.reduce((sum, { cards, cores: given, unhealthy }) => ({
    cards: sum.cards + cards, cores: sum.cores + given, unhealthy: sum.unhealthy + unhealthy }), { cards: 0, cores: 0, unhealthy: 0 });
  return (
    <>
      <div class={is_narrow ? 'map narrow' : 'map'} ref={ref} role="img" onPointerMove={on_move} onPointerLeave={on_leave} onClick={on_click}
        aria-label={text('map.label', { cards: sums.cards, given: cores(sums.cores), unhealthy: sums.unhealthy })}>
        {grids.length === groups.length && groups.map((group, index) => (
          <Group key={`${group.model} ${group.mode}`} group={group} grid={grids[index]} fleet={fleet} measured={measured} colors={colors} />
        ))}
      </div>
      <div aria-hidden="true" ref={(element) => { pointer.current = element && { ring: element.firstChild, tip: element.lastChild }; }}>
        <div class="ring" hidden /><div class="tip" hidden />
      </div>
      <MapLegend has_bars={(grids[0]?.pitch ?? 0) >= smallest_with_bars} has_measured={has_measured} />
    </>
  );
}

function MapLegend({ has_bars, has_measured }) {
  const bars = [['cores', 'legend.cores'], ['memory', 'legend.memory'], ...(has_measured ? [['measured', 'legend.measured']] : [])];
  const shades = [0, 1, 2, 3, 4].map((level) => [`shade_${level}`, `legend.use_${level}`]);
  const samples = [...(has_bars ? bars : shades), [has_bars ? 'sick' : 'sick small', 'health.sick'], [has_bars ? 'cordoned' : 'cordoned small', 'health.cordoned'],
    [has_bars ? 'without' : 'without small', 'legend.without_mode']];
  return (
    <ul class="legend" aria-label={text('legend')}>
      {samples.map(([style, key]) => <li key={key}><span class={`cell ${style}`} aria-hidden="true" />{text(key)}</li>)}
    </ul>
  );
}

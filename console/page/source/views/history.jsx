// Use over time, from Prometheus: a chart, a range, and the same as a table.
import { useEffect, useState } from 'preact/hooks';

import { announce, use_answer } from '../answers.js';
import { either, moment, text } from '../language.js';
import { Chart } from '../parts/chart.jsx';
import { Answer, Empty } from '../parts/state.jsx';
import { keep_settings } from '../router.js';

export const charts = ['utilization', 'memory', 'cards', 'namespace_cores', 'namespace_utilization'];
export const ranges = ['30m', '1h', '6h', '12h', '24h', '2d', '7d', 'custom'];
const longest_custom_s = 31 * 86400;
const refresh_ms = 60000;
const refresh_empty_ms = 10000; // the first samples of a new Prometheus are awaited

// What <input type="datetime-local"> takes: local time without a zone.
function local_text(seconds) {
  if (!Number.isFinite(seconds)) return '';
  const date = new Date(seconds * 1000 - new Date(seconds * 1000).getTimezoneOffset() * 60000);
  return date.toISOString().slice(0, 16);
}
const seconds_of = (value) => Math.floor(new Date(value).getTime() / 1000);

/// The message about a custom range that cannot be asked for; null: it can.
export function custom_problem(start, end) {
  if (!Number.isFinite(start) || !Number.isFinite(end)) return 'history.custom_missing';
  if (start >= end) return 'history.custom_order';
  return end - start > longest_custom_s ? 'history.custom_long' : null;
}

function address_of({ chart, range, start, end, namespace, node }) {
  const query = new URLSearchParams({ chart, range });
  if (range === 'custom') {
    query.set('from', start);
    query.set('to', end);
  }
  if (namespace && chart.startsWith('namespace_')) query.set('namespace', namespace);
  if (node && ['utilization', 'memory'].includes(chart)) query.set('node', node);
  return `history?${query}`;
}

function Result({ address, chart, drawing, on_refused }) {
  const answer = use_answer(address, 'history', on_refused);
  const has_series = (answer.body?.series.length ?? 0) > 0;
  useEffect(() => {
    const timer = setInterval(() => { if (!document.hidden) announce(['history']); }, has_series ? refresh_ms : refresh_empty_ms);
    return () => clearInterval(timer);
  }, [has_series]);
  return (
    <Answer answer={answer}>{(body) => {
      if (!body.available) return <p class="notice" role="status">{text('history.none')} {either(body.messages) || body.message}</p>;
      if (body.series.length === 0) return <Empty>{text('history.empty')}</Empty>;
      const label = text('history.label', { chart: text(`chart.${chart}`), from: moment(body.from), to: moment(body.to) });
      return <><p class="summary">{label}</p><Chart body={body} label={label} drawing={drawing} /></>;
    }}</Answer>
  );
}

export function History({ me, drawing, on_refused, settings }) {
  const shown = charts.filter((chart) => me.views.fleet || chart.startsWith('namespace_'));
  const [choice, set_choice] = useState(() => {
    const end = Math.floor(Date.now() / 60000) * 60;
    const known = (value, values, otherwise) => (values.includes(value) ? value : otherwise);
    return { chart: known(settings.chart, shown, shown[0]), range: known(settings.range, ranges, '1h'), start: Number(settings.from) || end - 3600,
      end: Number(settings.to) || end, namespace: settings.namespace ?? (me.allNamespaces ? '' : me.namespaces[0] ?? ''), node: settings.node ?? '' };
  });
  const [node, set_node] = useState(choice.node);
  useEffect(() => {
    const { chart, range, start, end, namespace } = choice;
    const times = range === 'custom' ? { from: String(start), to: String(end) } : {};
    keep_settings({ chart: chart === shown[0] ? '' : chart, range: range === '1h' ? '' : range, namespace, node: choice.node, ...times });
  }, [choice]);
  const change = (part) => set_choice({ ...choice, ...part });
  const is_custom = choice.range === 'custom';
  const problem = is_custom ? custom_problem(choice.start, choice.end) : null;
  return (
    <section>
      <h1 tabindex="-1">{text('view.history')}</h1>
      <div class="controls">
        <label>{text('history.chart')} <select value={choice.chart} onChange={(event) => change({ chart: event.target.value })}>
          {shown.map((chart) => <option key={chart} value={chart}>{text(`chart.${chart}`)}</option>)}
        </select></label>
        {choice.chart.startsWith('namespace_') && (
          <label>{text('column.namespace')} <select value={choice.namespace} onChange={(event) => change({ namespace: event.target.value })}>
            {me.allNamespaces && <option value="">{text('filter.all')}</option>}
            {me.namespaces.map((name) => <option key={name} value={name}>{name}</option>)}
          </select></label>
        )}
        {['utilization', 'memory'].includes(choice.chart) && (
          <form onSubmit={(event) => { event.preventDefault(); change({ node: node.trim() }); }}>
            <label>{text('column.node')} <input type="search" value={node}
              onInput={(event) => set_node(event.target.value)} onChange={() => change({ node: node.trim() })} /></label>
          </form>
        )}
        <fieldset class="radios"><legend>{text('history.range')}</legend>
          {ranges.map((range) => (
            <label key={range}>
              <input type="radio" name="range" value={range} checked={choice.range === range} onChange={() => change({ range })} />
              {' '}{range === 'custom' ? text('history.custom') : range}
            </label>
          ))}
        </fieldset>
        {is_custom && (
          <>
            <label>{text('history.start')} <input type="datetime-local" value={local_text(choice.start)}
              onChange={(event) => change({ start: seconds_of(event.target.value) })} /></label>
            <label>{text('history.end')} <input type="datetime-local" value={local_text(choice.end)}
              onChange={(event) => change({ end: seconds_of(event.target.value) })} /></label>
          </>
        )}
      </div>
      {problem ? <p class="notice bad" role="alert">{text(problem)}</p>
        : <Result key={choice.chart} address={address_of(choice)} chart={choice.chart} drawing={drawing} on_refused={on_refused} />}
    </section>
  );
}

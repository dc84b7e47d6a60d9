// One pod: what it holds, what it uses, and what happened to it, on one time line.
import { useState } from 'preact/hooks';

import { use_answer } from '../answers.js';
import { cores, either, memory, moment, number, span, text, word } from '../language.js';
import { Chart } from '../parts/chart.jsx';
import { Command } from '../parts/command.jsx';
import { Held } from '../parts/held.jsx';
import { Answer, Empty } from '../parts/state.jsx';
import { Table, Unknown } from '../parts/table.jsx';
import { keep_settings, route_of } from '../router.js';

const ranges = ['1h', '6h', '24h', '7d'];
const charts = ['pod_utilization', 'pod_memory'];

const write_moment = ({ kind, reason, text: said, count }) => {
  const first = kind === 'event' ? reason : text(`moment.${kind}`, { reason, code: said });
  const more = kind === 'event' || kind === 'is_not' ? said : '';
  return [first, more, count > 1 && text('moment.count', { count })].filter(Boolean).join(' · ');
};

function Moments({ moments, message }) {
  return (
    <>
      <h2>{text('pod.moments')}</h2>
      {message && <p class="quiet">{message}</p>}
      {moments.length === 0 ? <Empty>{text('pod.no_moments')}</Empty> : (
        <Table label={text('pod.moments')} columns={[['column.time'], ['column.container'], ['column.happened']]}>
          {moments.toReversed().map((entry, index) => (
            <tr key={index} class={entry.warning ? 'bad' : ''}>
              <th scope="row" class="one_line">{moment(entry.time)}</th>
              <td>{entry.container || '–'}</td>
              <td class={entry.warning ? 'state bad' : ''}>{write_moment(entry)}</td>
            </tr>
          ))}
        </Table>
      )}
    </>
  );
}

/// A chart with the moments as lines through it.
function Use({ chart, range, pod, moments, drawing, on_refused }) {
  const query = new URLSearchParams({ chart, range, namespace: pod.namespace, pod: pod.name });
  const answer = use_answer(`history?${query}`, 'history', on_refused);
  return (
    <>
      <h3>{text(`chart.${chart}`)}</h3>
      <Answer answer={answer}>{(body) => {
        if (!body.available) return <p class="quiet">{text('history.none')} {either(body.messages) || body.message}</p>;
        if (body.series.length === 0) return <Empty>{text('history.empty')}</Empty>;
        const marks = moments.filter(({ time }) => time >= body.from && time <= body.to);
        const label = text('history.label', { chart: text(`chart.${chart}`), from: moment(body.from), to: moment(body.to) });
        return <Chart body={body} label={label} drawing={drawing} marks={marks} />;
      }}</Answer>
    </>
  );
}

function Facts({ pod, me }) {
  const facts = [
    ['column.state', [word('pod_phase', pod.phase), pod.reason].filter(Boolean).join(' · ')],
    ['column.node', !pod.node ? '–' : me.views.node ? <a href={route_of('node', pod.node)}>{pod.node}</a> : pod.node],
    ['column.cards', pod.cards.length === 0 ? text('pod.no_cards') : <Held cards={pod.cards} />],
    ['column.use', pod.use === null ? <Unknown /> : text('capacity.of', { used: cores(pod.use), total: cores(pod.cores) })],
    ['column.memory', memory(pod.memoryMiB)],
    ['pod.isolation', pod.isolation || <Unknown />],
    ['column.restarts', number(pod.restarts)],
    ['column.age', pod.since ? span(Date.now() / 1000 - pod.since) : <Unknown />],
  ];
  return <dl class="facts">{facts.map(([key, value]) => <div key={key}><dt>{text(key)}</dt><dd>{value}</dd></div>)}</dl>;
}

export function Pod({ me, name, drawing, on_refused, settings }) {
  const [range, set_range] = useState(ranges.includes(settings.range) ? settings.range : '24h');
  const [namespace = '', pod_name = ''] = name.split('/');
  const answer = use_answer(`pods/${encodeURIComponent(namespace)}/${encodeURIComponent(pod_name)}`, 'pods', on_refused);
  function change_range(chosen) {
    set_range(chosen);
    keep_settings({ range: chosen === '24h' ? '' : chosen });
  }
  return (
    <section>
      <h1 tabindex="-1">{text('pod.title', { name })}</h1>
      <Answer answer={answer}>{(pod) => (
        <>
          <Facts pod={pod} me={me} />
          {pod.cards.length === 0 && <Command command={`quartermaster explain pod ${pod.name} -n ${pod.namespace}`} />}
          {me.views.history && me.prometheus && (
            <>
              <h2>{text('pod.use')}</h2>
              <fieldset class="radios"><legend>{text('history.range')}</legend>
                {ranges.map((choice) => (
                  <label key={choice}><input type="radio" name="range" value={choice} checked={choice === range} onChange={() => change_range(choice)} />{' '}{choice}</label>
                ))}
              </fieldset>
              {charts.map((chart) => <Use key={chart} chart={chart} range={range} pod={pod} moments={pod.moments} drawing={drawing} on_refused={on_refused} />)}
            </>
          )}
          <Moments moments={pod.moments} message={either(pod.eventsMessages) || pod.eventsMessage} />
        </>
      )}</Answer>
    </section>
  );
}

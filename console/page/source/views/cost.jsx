// What a month costs: per namespace and model, and where the hours of GPUs went that no one used.
import { useState } from 'preact/hooks';

import { use_answer } from '../answers.js';
import { either, moment, number, text, word } from '../language.js';
import { Answer, Empty } from '../parts/state.jsx';
import { Bar, Key, Table } from '../parts/table.jsx';
import { keep_settings } from '../router.js';

const hours = (value) => number(value, 2);

function Rows({ rows }) {
  const dearest = Math.max(...rows.map((row) => row.hundredths ?? 0));
  const sorted = rows.toSorted((one, other) => (other.hundredths ?? 0) - (one.hundredths ?? 0) || other.gpuHours - one.gpuHours);
  return (
    <Table label={text('view.cost')} columns={[['column.namespace'], ['column.model'], ['column.mode'], ['column.hours', true], ['column.cost']]}>
      {sorted.map((row) => (
        <tr key={`${row.namespace} ${row.model} ${row.mode}`}>
          <th scope="row">{row.namespace}</th>
          <td>{row.model || text('unknown_model')}</td>
          <td>{row.mode.toLowerCase()}</td>
          <td class="number">{hours(row.gpuHours)}</td>
          <td>{row.amount === null ? <span class="quiet">{text('cost.no_price')}</span> : <Bar parts={[['given', row.hundredths]]} whole={dearest} label={row.amount} />}</td>
        </tr>
      ))}
    </Table>
  );
}

function Models({ models }) {
  return (
    <>
      <h2>{text('cost.models')}</h2>
      <Table label={text('cost.models')} columns={[['column.model'], ['column.hours', true], ['cost.whereabouts'], ['cost.idle_amount', true]]}>
        {models.map((row) => (
          <tr key={row.model}>
            <th scope="row">{row.model || text('unknown_model')}</th>
            <td class="number">{hours(row.capacity)}</td>
            <td><Bar parts={[['given', row.used], ['borrowed', row.unattributed], ['stranded', row.unhealthy]]} whole={row.capacity + row.beyond}
              label={['used', 'idle', 'unattributed', 'unhealthy', 'beyond'].filter((part) => row[part] > 0)
                .map((part) => text(`cost.${part}`, { hours: hours(row[part]) })).join(' · ')} /></td>
            <td class="number">{row.idleAmount ?? '–'}</td>
          </tr>
        ))}
      </Table>
      <Key parts={[['given', 'key.used'], ['borrowed', 'key.unattributed'], ['stranded', 'key.unhealthy']]} />
      <p class="quiet">{text('cost.help')}</p>
    </>
  );
}

export function Cost({ on_refused, settings }) {
  const [month, set_month] = useState(settings.month ?? '');
  const answer = use_answer(month ? `cost?month=${encodeURIComponent(month)}` : 'cost', 'cost', on_refused);
  function change_month(chosen) {
    set_month(chosen);
    keep_settings({ month: chosen });
  }
  return (
    <section>
      <h1 tabindex="-1">{text('view.cost')}</h1>
      <Answer answer={answer}>{({ month: shown, months, countedUntil, amount, rows, models, message, messages }) => (
        <>
          <div class="controls">
            <label>{text('cost.month')} <select value={shown} onChange={(event) => change_month(event.target.value === months[0] ? '' : event.target.value)}>
              {months.map((option) => <option key={option} value={option}>{option}</option>)}
            </select></label>
          </div>
          {amount !== null && <p class="summary" role="status">{text('cost.sum', { amount })}</p>}
          {countedUntil !== null && <p class="quiet">{text('cost.counted', { time: moment(countedUntil) })}</p>}
          {message && <p class="notice">{either(messages) || message}</p>}
          {rows.length === 0 ? <Empty>{text('cost.empty')}</Empty> : <Rows rows={rows} />}
          {models?.length > 0 && <Models models={models} />}
          <p class="quiet"><code>quartermaster report chargeback --month {shown}</code></p>
        </>
      )}</Answer>
    </section>
  );
}

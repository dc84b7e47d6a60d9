// Namespaces: quota, what is used, borrowed and lent, and what it costs.
import { use_answer } from '../answers.js';
import { cores, either, memory, number, text, word } from '../language.js';
import { Answer, Empty } from '../parts/state.jsx';
import { Bar, Hidden, Key, Table } from '../parts/table.jsx';
import { route_of } from '../router.js';

const shown = { cores, memory, cards: number };
const amount_of = (resource, amount) => (shown[resource] ?? number)(amount);

function Limit({ limit, has_cohort }) {
  const { resource, nominal, used, borrowed, lent } = limit;
  const whole = Math.max(nominal, used);
  return (
    <li>
      <span class="limit_name">{word('resource', resource)}{limit.model && ` · ${limit.model}`}{limit.scope && ` · ${limit.scope}`}</span>
      <Bar parts={[['given', used - borrowed], ['borrowed', borrowed]]} whole={whole}
        label={[text('quota.used', { used: amount_of(resource, used), nominal: amount_of(resource, nominal) }),
          borrowed > 0 && text(has_cohort ? 'quota.borrowed' : 'quota.beyond', { amount: amount_of(resource, borrowed) }),
          lent > 0 && text('quota.lent', { amount: amount_of(resource, lent) })].filter(Boolean).join(' · ')} />
    </li>
  );
}

function Quota({ quota, has_cohort }) {
  if (quota === null) return <Hidden />;
  if (quota.length === 0) return <span class="quiet">{text('quota.none')}</span>;
  return <ul class="limits">{quota.map((limit, index) => <Limit key={index} limit={limit} has_cohort={has_cohort} />)}</ul>;
}

const cost_text = (cost) => (typeof cost === 'number' ? number(cost, 2) : String(cost));

export function Namespaces({ on_refused }) {
  const answer = use_answer('namespaces', 'namespaces', on_refused);
  return (
    <section>
      <h1 tabindex="-1">{text('view.namespaces')}</h1>
      <Answer answer={answer}>{({ namespaces, costMessage, costMessages }) => (
        <>
          {costMessage && <p class="quiet">{text('column.cost')}: {either(costMessages) || costMessage}</p>}
          <Key parts={[['given', 'key.given'], ['borrowed', 'key.borrowed']]} />
          {namespaces.length === 0 ? <Empty>{text('namespaces.empty')}</Empty> : (
            <Table label={text('view.namespaces')} columns={[['column.namespace'], ['column.pods', true], ['column.waiting', true], ['column.shares', true],
              ['column.cores', true], ['column.memory', true], ['column.quota'], ['column.cohort'], ['column.cost', true]]}>
              {namespaces.map((row) => (
                <tr key={row.name}>
                  <th scope="row">{row.name}</th>
                  <td class="number">{number(row.pods)}</td><td class="number">{row.waiting > 0 ? <a href={route_of('waiting', row.name)}>{number(row.waiting)}</a> : number(0)}</td>
                  <td class="number">{number(row.used.cards)}</td><td class="number">{cores(row.used.cores)}</td>
                  <td class="number">{memory(row.used.memoryMiB)}</td>
                  <td><Quota quota={row.quota} has_cohort={Boolean(row.cohort)} /></td>
                  <td>{row.cohort === null ? <Hidden /> : row.cohort || '–'}</td>
                  <td class="number">{row.cost === null ? '–' : cost_text(row.cost)}</td>
                </tr>
              ))}
            </Table>
          )}
        </>
      )}</Answer>
    </section>
  );
}

// How long the cards last: what is free, what is stranded, days until all is given out.
import { use_answer } from '../answers.js';
import { cores, either, memory, number, text, word } from '../language.js';
import { Answer, Empty } from '../parts/state.jsx';
import { Bar, Key, Table, Unknown } from '../parts/table.jsx';

const soon_days = 14;

// Without a message there is a source of history: use is flat, falls, or has too short a past.
function Days({ days, is_known }) {
  if (days === null) return is_known ? <span class="quiet">{text('capacity.no_end')}</span> : <Unknown />;
  const label = number(days, days < 10 ? 1 : 0);
  return days < soon_days ? <strong>⚠ {label}</strong> : <>{label}</>;
}

export function Capacity({ on_refused }) {
  const answer = use_answer('capacity', 'capacity', on_refused);
  return (
    <section>
      <h1 tabindex="-1">{text('view.capacity')}</h1>
      <Answer answer={answer}>{({ models, trendMessage, trendMessages }) => (models.length === 0 ? <Empty>{text('fleet.empty')}</Empty> : (
        <>
          <Table label={text('view.capacity')}
            columns={[['column.model'], ['column.mode'], ['column.nodes', true], ['column.usable', true], ['column.free', true],
              ['column.given_cores'], ['column.given_memory'], ['column.stranded'], ['column.days']]}>
            {models.map((row) => (
              <tr key={`${row.model} ${row.mode}`}>
                <th scope="row">{row.model || text('unknown_model')}</th>
                <td>{row.mode ? word('mode', row.mode) : text('mode_none')}</td>
                <td class="number">{number(row.nodes)}</td>
                <td class="number">{[text('capacity.usable', { usable: row.usable, cards: row.cards }),
                  row.unhealthy > 0 && text('capacity.unhealthy', { count: row.unhealthy }),
                  row.cordoned > 0 && text('capacity.cordoned', { count: row.cordoned })].filter(Boolean).join(' · ')}</td>
                <td class="number">{number(row.free)}</td>
                <td><Bar parts={[['given', row.usedCores], ['stranded', row.strandedCores]]} whole={row.cores}
                  label={text('capacity.of', { used: cores(row.usedCores), total: cores(row.cores) })} /></td>
                <td><Bar parts={[['given', row.usedMiB], ['stranded', row.strandedMiB]]} whole={row.memoryMiB}
                  label={text('capacity.of', { used: memory(row.usedMiB), total: memory(row.memoryMiB) })} /></td>
                <td>{row.strandedCards === 0 ? '–'
                  : text('capacity.stranded', { cards: row.strandedCards, cores: cores(row.strandedCores), memory: memory(row.strandedMiB) })}</td>
                <td><Days days={row.daysUntilFull} is_known={!trendMessage} /></td>
              </tr>
            ))}
          </Table>
          <Key parts={[['given', 'key.given'], ['stranded', 'key.stranded']]} />
          <p class="quiet">{text('capacity.help')}</p>
          {trendMessage && <p class="notice">{either(trendMessages) || trendMessage}</p>}
        </>
      ))}</Answer>
    </section>
  );
}

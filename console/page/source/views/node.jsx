// One node: its cards and who has them, a change of mode with its steps and what blocks it, topology, what it offers.
import { use_answer } from '../answers.js';
import { cores, either, language, memory, moment, number, text, word } from '../language.js';
import { level_of, use_of } from '../parts/card.jsx';
import { Answer, Empty } from '../parts/state.jsx';
import { Bar, Table, Unknown } from '../parts/table.jsx';
import { route_of } from '../router.js';

const mode_text = (mode) => (mode && mode !== 'none' ? word('mode', mode) : text('mode_none'));

const is_bad = (node) => !node.ready || node.reportIsOld || node.change?.stuck || node.cards.some((card) => !card.healthy);

function Facts({ node }) {
  const sick = node.cards.filter((card) => !card.healthy).map((card) => String(card.index));
  const facts = [
    ['column.state', [text(node.ready ? 'node_flag.ok' : 'node_flag.not_ready'), sick.length > 0 && text('node.sick', { cards: sick.join(', ') }),
      node.reportIsOld && text('node_flag.old'), node.change && text(node.change.stuck ? 'node_flag.stuck' : 'node_flag.changing'), node.cordoned && text('node_flag.cordoned'),
    ].filter(Boolean).join(' · ')],
    ['column.mode', node.requestedMode && node.requestedMode !== node.mode
      ? text('node.modes', { mode: mode_text(node.mode), requested: mode_text(node.requestedMode) }) : mode_text(node.mode)],
    ['node.phase', [word('phase', node.phase), node.reason].filter(Boolean).join(' · ')],
    ['node.message', either(node.message)],
    ['node.address', node.address],
    ['node.driver', [node.driver, node.cuda && `CUDA ${node.cuda}`].filter(Boolean).join(' · ')],
  ];
  return (
    <dl class="facts">
      {facts.filter(([, value]) => value).map(([key, value]) => (
        <div key={key}><dt>{text(key)}</dt><dd class={key === 'column.state' && is_bad(node) ? 'state bad' : ''}>{value}</dd></div>
      ))}
    </dl>
  );
}

const step_signs = { done: '✓', now: '▶', later: '○' };

function Change({ change }) {
  return (
    <section class={change.stuck ? 'panel bad' : 'panel'}>
      <h2>{text('change.title', { source: mode_text(change.source), target: mode_text(change.target) })}</h2>
      <p>{change.since > 0 && text('change.since', { time: moment(change.since) })} {change.stuck && <strong>{text('change.stuck')}</strong>}</p>
      <ol class="steps">
        {change.steps.map(({ phase, state }) => (
          <li key={phase} class={state} aria-current={state === 'now' ? 'step' : undefined}>
            <span aria-hidden="true">{step_signs[state]}</span> {word('phase', phase)} <span class="quiet">{text(`step.${state}`)}</span>
          </li>
        ))}
      </ol>
      {(change.blockers.length > 0 || change.hiddenBlockers > 0) && (
        <>
          <h3>{text('change.blockers')}</h3>
          <ul>
            {change.blockers.map(({ namespace, name }) => <li key={`${namespace}/${name}`}><code>{namespace}/{name}</code></li>)}
            {change.hiddenBlockers > 0 && <li>{text('change.hidden', { count: change.hiddenBlockers })}</li>}
          </ul>
        </>
      )}
    </section>
  );
}

function Cards({ cards }) {
  return (
    <div class="tiles">
      {cards.map((card) => {
        const use = use_of({ memory_mib: card.memoryMiB, cores: card.cores, used_mib: card.usedMiB });
        return (
          <article key={card.uuid || card.index} class={card.healthy ? 'tile' : 'tile bad'}>
            <h3>{text('card.title', { index: String(card.index), model: card.model || text('unknown_model') })}</h3>
            <Bar parts={[[`level_${level_of(use)}`, Math.min(1, use)]]} whole={1}
              label={text('card.use', { cores: cores(card.cores), used: memory(card.usedMiB), total: card.memoryMiB ? memory(card.memoryMiB) : '?' })} />
            <dl class="facts small">
              <div><dt>{text('card.health')}</dt><dd>{card.health === 'Unknown' ? card.health : `${card.healthy ? '✓' : '✕'} ${card.health}`}</dd></div>
              {card.numa >= 0 && <div><dt>NUMA</dt><dd>{number(card.numa)}</dd></div>}
              {card.maxSharers > 0 && !card.shares.some(({ whole }) => whole) && (
                <div><dt>{text('card.sharers')}</dt><dd>{text('card.sharers_of', { now: card.sharers, most: card.maxSharers })}</dd></div>
              )}
              <div><dt>UUID</dt><dd><code>{card.uuid}</code></dd></div>
            </dl>
            {(card.cordoned || card.mig) && (
              <p>{[card.cordoned && text('card_flag.cordoned'), card.mig && text('card_flag.mig')].filter(Boolean).join(', ')}</p>
            )}
            {card.warnings.map((warning) => <p key={warning} class="notice bad">{warning}</p>)}
            <h4>{text('card.shares')}</h4>
            {card.shares.length === 0 ? <p class="quiet">{text('card.free')}</p> : (
              <ul class="share_list">
                {card.shares.map((share, index) => (
                  <li key={index}>
                    {share.pod === null ? <em>{text('hidden_share')}</em>
                      : <code>{share.namespace}/{share.pod}{share.container ? ` · ${share.container}` : ''}</code>}
                    {' '}{share.whole ? text('card.whole') : text('card.amount', { cores: cores(share.cores), memory: memory(share.memoryMiB) })}
                    {share.guessed && <span class="quiet"> {text('card.guessed')}</span>}
                  </li>
                ))}
              </ul>
            )}
          </article>
        );
      })}
    </div>
  );
}

// How near two cards are: what nvidia-smi calls NV#, PIX, PXB, PHB, NODE, SYS.
function nearness(link) {
  if (link === 'X') return 'self';
  if (link.startsWith('NV')) return 'near_4';
  return { PIX: 'near_3', PXB: 'near_2', PHB: 'near_2', NODE: 'near_1' }[link] ?? 'near_0';
}

function Topology({ rows }) {
  if (rows.length === 0) return <Empty>{text('topology.unknown')}</Empty>;
  return (
    <>
      <div class="wide" role="region" aria-label={text('topology.title')} tabindex="0">
        <table class="matrix">
          <thead><tr><td />{rows.map((row, index) => <th key={index} scope="col">{index}</th>)}</tr></thead>
          <tbody>
            {rows.map((row, index) => (
              <tr key={index}><th scope="row">{index}</th>{row.map((link, other) => <td key={other} class={nearness(link)}>{link}</td>)}</tr>
            ))}
          </tbody>
        </table>
      </div>
      <p class="quiet">{text('topology.help')}</p>
    </>
  );
}

export function Node({ name, on_refused }) {
  const answer = use_answer(`nodes/${encodeURIComponent(name)}`, 'node', on_refused);
  return (
    <section>
      <p><a href={route_of('fleet')}>← {text('view.fleet')}</a></p>
      <h1 tabindex="-1">{text('view.node', { name })}</h1>
      <Answer answer={answer}>{(node) => (
        <>
          <Facts node={node} />
          {node.change && <Change change={node.change} />}
          <h2>{text('node.cards')}</h2>
          {node.cards.length ? <Cards cards={node.cards} /> : <Empty>{text('node.no_cards')}</Empty>}
          <h2>{text('topology.title')}</h2>
          <Topology rows={node.topology} />
          <h2>{text('node.offers')}</h2>
          {node.resources.length === 0 ? <Empty>{text('node.offers_nothing')}</Empty> : (
            <Table label={text('node.offers')}
              columns={[['column.resource'], ['column.capacity', true], ['column.allocatable', true], ['column.requested', true]]}>
              {node.resources.map((row) => (
                <tr key={row.name}><th scope="row"><code>{row.name}</code></th>
                  {[row.capacity, row.allocatable, row.requested].map((amount, index) => (
                    <td key={index} class="number">{amount === null ? <Unknown /> : number(amount)}</td>
                  ))}</tr>
              ))}
            </Table>
          )}
          {node.preflight.length > 0 && (
            <>
              <h2>{text('preflight.title')}</h2>
              <Table label={text('preflight.title')} columns={[['column.check'], ['column.state'], ['column.found'], ['column.remedy']]}>
                {node.preflight.map((row) => (
                  <tr key={row.check} class={row.state === 'failed' ? 'bad' : ''}><th scope="row"><code>{row.check}</code></th>
                    <td>{text(`check_sign.${row.state}`)} {word('check', row.state)}</td><td>{row.found[language()]}</td><td>{row.remedy[language()]}</td></tr>
                ))}
              </Table>
            </>
          )}
        </>
      )}</Answer>
    </section>
  );
}

// The first screen: is all well, how many GPUs, one cell for each, and why pods wait. What is wrong and every number
// come from the console as they are; nothing is judged here.
import { useEffect, useMemo } from 'preact/hooks';

import { announce, use_answer } from '../answers.js';
import { clock, cores, either, moment, number, percent, span, text, word } from '../language.js';
import { Command } from '../parts/command.jsx';
import { groups_of, rank_of } from '../parts/layout.js';
import { GpuMap } from '../parts/map.jsx';
import { Answer, Empty, error_text } from '../parts/state.jsx';
import { route_of } from '../router.js';
import { Grid } from './fleet.jsx';

const measured_every_ms = 30000;
const signs = { good: '✓', wrong: '✕', warning: '!', changing: '↻', unknown: '?', skipped: '–' };

/// What the stream says of the age of all that is shown, in the form of the console's own parts.
const data_part = (live, seen) => (live === 'live'
  ? { part: 'data', outcome: 'good', text: { en: text('data.live'), zh: text('data.live') }, findings: [] }
  : { part: 'data', outcome: 'wrong', text: null, findings: [{ outcome: 'wrong', text: { en: text(`live.${live}`, { time: clock(seen) }) }, nodes: [], count: 0 }] });

function Part({ part }) {
  const [first] = part.findings;
  const said = first ? either(first.text) : either(part.text) || text(`outcome.${part.outcome}`);
  return (
    <li class={`part ${part.outcome}`}>
      <span class="part_name"><span class="sign" aria-hidden="true">{signs[part.outcome] ?? '?'}</span> {word('part', part.part)}
        <span class="unseen">: {word('outcome', part.outcome)}</span></span>
      <span class="part_text" title={said}>{said}</span>
    </li>
  );
}

function Nodes({ names, count }) {
  return (
    <p class="at_nodes">
      {names.map((name, index) => <>{index > 0 && ' '}<a href={route_of('node', name)}>{name}</a></>)}
      {count > names.length && ` ${text('health.more_nodes', { count: count - names.length })}`}
    </p>
  );
}

function Finding({ part, finding }) {
  return (
    <li class={`finding ${finding.outcome}`}>
      <p class="finding_text"><span class="sign" aria-hidden="true">{signs[finding.outcome]}</span> <strong>{word('part', part)}</strong>
        {finding.count > 1 && <span class="count">{text('health.on_nodes', { count: finding.count })}</span>}
        {' '}{either(finding.text)}</p>
      {finding.remedy && <p class="remedy">{either(finding.remedy)}</p>}
      {finding.nodes.length > 0 && <Nodes names={finding.nodes} count={finding.count} />}
      {finding.command && <Command command={finding.command} />}
    </li>
  );
}

function Health({ health, live, seen }) {
  const parts = [...health.parts, data_part(live, seen)];
  const problems = health.problems + (live === 'live' ? 0 : 1);
  const warnings = parts.flatMap(({ findings }) => findings).filter(({ outcome }) => outcome !== 'wrong').length;
  return (
    <section class="health" aria-label={text('health.title')}>
      <p class={problems ? 'verdict bad' : 'verdict'} role="status">
        {problems ? text('health.problems', { count: problems }) : text(warnings ? 'health.well_but' : 'health.well', { count: warnings })}
      </p>
      <ul class="parts">{parts.map((part) => <Part key={part.part} part={part} />)}</ul>
    </section>
  );
}

function Needs({ health }) {
  const all = health.parts.flatMap(({ part, findings }) => findings.map((finding) => ({ part, finding })));
  const order = { wrong: 0, warning: 1, unknown: 2, changing: 3 };
  all.sort((one, other) => order[one.finding.outcome] - order[other.finding.outcome]);
  if (all.length === 0) return null;
  return (
    <section class="box needs">
      <h2>{text('health.needs')}</h2>
      <ul class="findings">{all.map(({ part, finding }, index) => <Finding key={index} part={part} finding={finding} />)}</ul>
    </section>
  );
}

function Figure({ name, value, sub, bad = false, href }) {
  const body = <><span class="figure_name">{text(`figure.${name}`)}</span><span class={value.length > 7 ? 'figure_value long' : 'figure_value'}>{value}</span><span class="figure_sub">{sub}</span></>;
  return <li class={bad ? 'figure bad' : 'figure'}>{href ? <a href={href}>{body}</a> : body}</li>;
}

function Figures({ overview, me }) {
  const { gpus, waiting, cost } = overview;
  const share = gpus && gpus.total > 0 ? percent(gpus.allocatedCores / 100 / gpus.total) : '';
  return (
    <ul class="figures" aria-label={text('figures.title')}>
      {gpus && (
        <>
          <Figure name="total" value={number(gpus.total)} sub={text('figure.gpus')} href={route_of('capacity')} />
          <Figure name="allocated" value={cores(gpus.allocatedCores)} sub={share} href={route_of('capacity')} />
          <Figure name="free" value={number(gpus.free)} sub={text('figure.free_sub')} href={route_of('capacity')} />
          <Figure name="without_mode" value={number(gpus.withoutMode)} sub={text('figure.without_mode_sub')} bad={gpus.withoutMode > 0} />
          <Figure name="cordoned" value={number(gpus.cordoned)} sub={text('figure.cordoned_sub')} />
          <Figure name="unhealthy" value={number(gpus.unhealthy)} sub={text('figure.unhealthy_sub')} bad={gpus.unhealthy > 0}
            href={route_of('fleet', undefined, { problems: '1' })} />
        </>
      )}
      {waiting && (
        <Figure name="waiting" value={number(waiting.pods)} bad={waiting.pods > 0} href={route_of('waiting')}
          sub={waiting.since ? text('figure.oldest', { age: span(Date.now() / 1000 - waiting.since) }) : text('figure.waiting_none')} />
      )}
      {cost && cost.amount !== null && (
        <Figure name="cost" value={cost.amount.split(' ')[0]} href={route_of('namespaces')}
          sub={[cost.amount.split(' ')[1], text(me.allNamespaces ? 'figure.cost_all' : 'figure.cost_own')].filter(Boolean).join(' · ')} />
      )}
    </ul>
  );
}

function Reasons({ on_refused }) {
  const answer = use_answer('waiting/reasons', 'waiting', on_refused);
  return (
    <section class="box reasons">
      <h2>{text('reasons.title')}</h2>
      <Answer answer={answer}>{({ total, lookedAt, groups }) => (
        <>
          {total === 0 && <p class="quiet">{text('waiting.empty')}</p>}
          <ul class="findings">
            {groups.map((group, index) => (
              <li key={index} class="finding">
                <p class="finding_text"><a class="pods" href={route_of('waiting', group.examples[0].namespace)}>{text('reasons.pods', { count: group.pods })}</a>
                  {' '}<strong>{word('waits', group.kind)}</strong> {either(group.reason)}</p>
                {group.change && <p class="remedy">{text('reasons.change')} {either(group.change)}</p>}
                <p class="quiet small">{group.examples.map(({ namespace, name }) => `${namespace}/${name}`).join(', ')}
                  {group.pods > group.examples.length && ', …'}{group.since && ` · ${text('figure.oldest', { age: span(Date.now() / 1000 - group.since) })}`}</p>
                <Command command={group.command} />
              </li>
            ))}
          </ul>
          {lookedAt < total && <p class="quiet">{text('reasons.more', { count: total - lookedAt })}</p>}
        </>
      )}</Answer>
    </section>
  );
}

/// Measured use of GPUs, read again every half a minute: its source has no events.
function use_measured(on_refused) {
  useEffect(() => {
    const timer = setInterval(() => { if (!document.hidden) announce(['measured']); }, measured_every_ms);
    return () => clearInterval(timer);
  }, []);
  return use_answer('measured', 'measured', on_refused).body?.nodes;
}

function Cells({ fleet, measured, drawing }) {
  const groups = useMemo(() => groups_of(fleet), [fleet]);
  const nodes = useMemo(() => {
    const all = groups.flatMap((group) => group.nodes);
    return [0, 1, 2, 3].flatMap((rank) => all.filter(([, , , flags]) => rank_of(flags) === rank));
  }, [groups]);
  const use_of_node = useMemo(() => (name) => measured?.[name], [measured]);
  if (nodes.length === 0) return <Empty>{text('fleet.empty')}</Empty>;
  return (
    <>
      <section class="box">
        <h2>{text('map.title')}</h2>
        <GpuMap fleet={fleet} groups={groups} measured={use_of_node} has_measured={Boolean(measured && Object.keys(measured).length)} drawing={drawing} />
      </section>
      <section class="box as_list">
        <h2>{text('map.list')}</h2>
        <Grid fleet={fleet} nodes={nodes} coloring="use" drawing={drawing} />
      </section>
    </>
  );
}

function Fleet({ drawing, on_refused }) {
  const answer = use_answer('fleet', 'fleet', on_refused);
  const measured = use_measured(on_refused);
  return <Answer answer={answer}>{(fleet) => <Cells fleet={fleet} measured={measured} drawing={drawing} />}</Answer>;
}

export function Overview({ me, on_refused, drawing, live, seen }) {
  const answer = use_answer('overview', 'overview', on_refused);
  const { body, error } = answer;
  return (
    <section class="overview">
      <h1 tabindex="-1" class="unseen">{text('view.overview')}</h1>
      {error && <p class="notice bad" role="alert">{error_text(error)} {body && text('error.old')}</p>}
      {!body && !error && <p class="notice" role="status">{text('loading')}</p>}
      {body?.health && <Health health={body.health} live={live} seen={seen} />}
      {body && <Figures overview={body} me={me} />}
      <div class={me.views.fleet ? 'columns' : 'columns narrow'}>
        <div class="side_column">
          {body?.health && <Needs health={body.health} />}
          {me.views.waiting && <Reasons on_refused={on_refused} />}
        </div>
        {me.views.fleet && <div class="wide_column"><Fleet drawing={drawing} on_refused={on_refused} /></div>}
      </div>
      {!me.views.fleet && !me.views.waiting && <Empty>{text('overview.nothing')}</Empty>}
      <p class="quiet small">{text('overview.read', { time: moment(seen) })}</p>
    </section>
  );
}

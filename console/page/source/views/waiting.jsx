// Pods that wait for cards: why, and the smallest change that would place each.
import { useState } from 'preact/hooks';

import { use_answer } from '../answers.js';
import { either, number, text, word } from '../language.js';
import { Command } from '../parts/command.jsx';
import { Answer, Empty } from '../parts/state.jsx';
import { route_of } from '../router.js';

const page_size = 50;

function Pod({ pod, has_fleet }) {
  const is_known = pod.kind !== 'unknown_resource'; // else no node was looked at, and the reason says what was meant
  const shown = [pod.changeOfPod?.text.en, pod.changeOfNode?.text.en];
  const others = pod.changes.filter((change) => !shown.includes(change.text.en));
  return (
    <article class="panel">
      <h2><a href={route_of('pod', `${pod.namespace}/${pod.name}`)}><code>{pod.namespace}/{pod.name}</code></a></h2>
      <p>
        <span class="tag">{word('waits', pod.kind)}</span>
        {' '}{Object.entries(pod.asks).map(([key, amount]) => <code key={key} class="asks">{key}: {number(amount)}</code>)}
      </p>
      <p>{either(pod.reason)}</p>
      {pod.unserved.map((sentence) => <p key={sentence.en}><strong>{either(sentence)}</strong></p>)}
      <dl class="facts">
        {others.map((change) => <div key={change.text.en}><dt>{text('waiting.change')}</dt><dd><strong>{either(change.text)}</strong></dd></div>)}
        {pod.changeOfPod && <div><dt>{text('waiting.change_of_pod')}</dt><dd><strong>{either(pod.changeOfPod.text)}</strong></dd></div>}
        {pod.changeOfNode && <div><dt>{text('waiting.change_of_node')}</dt><dd><strong>{either(pod.changeOfNode.text)}</strong></dd></div>}
        {pod.nearestNode && (
          <div><dt>{text('waiting.nearest')}</dt>
            <dd>{has_fleet ? <a href={`#/node/${encodeURIComponent(pod.nearestNode)}`}>{pod.nearestNode}</a> : pod.nearestNode}</dd></div>
        )}
        {pod.quota && <div><dt>{text('waiting.quota')}</dt><dd>{either(pod.quota)}</dd></div>}
        {is_known && <div><dt>{text('waiting.nodes')}</dt><dd>{text('waiting.nodes_of', { fitting: pod.fitting, nodes: pod.nodes })}</dd></div>}
      </dl>
      {is_known && pod.changes.length === 0 && pod.unserved.length === 0 && <p class="quiet">{text('waiting.no_change')}</p>}
      <Command command={pod.command ?? `quartermaster explain pod ${pod.name} -n ${pod.namespace}`} />
      {pod.causes.length + pod.closed.length > 0 && (
        <ul>
          {pod.kind !== 'closed' && pod.closed.map((closed) => (
            <li key={closed.reason.en}>{text('waiting.closed', { count: closed.nodes, reason: either(closed.reason) })}</li>
          ))}
          {pod.causes.map((cause, index) => (
            <li key={index}>{text('waiting.cause', { count: cause.nodes, reason: either(cause.reason) })}
              {cause.key && <> <code>{cause.key}</code></>}{cause.container && <> · {text('waiting.container', { name: cause.container })}</>}</li>
          ))}
        </ul>
      )}
    </article>
  );
}

export function Waiting({ me, name, on_refused }) {
  const [namespace, set_namespace] = useState(name);
  const [offset, set_offset] = useState(0);
  function change_namespace(chosen) {
    set_namespace(chosen);
    set_offset(0);
    history.replaceState(null, '', route_of('waiting', chosen || undefined));
  }
  const query = new URLSearchParams({ ...(namespace && { namespace }), offset, limit: page_size });
  const answer = use_answer(`waiting?${query}`, 'waiting', on_refused);
  return (
    <section>
      <h1 tabindex="-1">{text('view.waiting')}</h1>
      <div class="controls">
        <label>{text('column.namespace')} <select value={namespace} onChange={(event) => change_namespace(event.target.value)}>
          <option value="">{text('filter.all')}</option>
          {(me.namespaces.includes(namespace) || !namespace ? me.namespaces : [namespace, ...me.namespaces])
            .map((option) => <option key={option} value={option}>{option}</option>)}
        </select></label>
      </div>
      <Answer answer={answer}>{({ total, pods }) => (
        <>
          <p class="summary" role="status">{text('waiting.summary', { total })}</p>
          {pods.length === 0 && <Empty>{text('waiting.empty')}</Empty>}
          {pods.map((pod) => <Pod key={`${pod.namespace}/${pod.name}`} pod={pod} has_fleet={me.views.node} />)}
          {total > page_size && (
            <p class="pages">
              <button type="button" disabled={offset === 0} onClick={() => set_offset(Math.max(0, offset - page_size))}>{text('page.before')}</button>
              <span>{text('page.of', { first: total && offset + 1, last: offset + pods.length, total })}</span>
              <button type="button" disabled={offset + page_size >= total} onClick={() => set_offset(offset + page_size)}>{text('page.next')}</button>
            </p>
          )}
        </>
      )}</Answer>
    </section>
  );
}

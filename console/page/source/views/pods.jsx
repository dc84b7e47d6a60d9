// Pods that hold GPUs: which, how much of each, and what they use of it now. A person's own namespaces come first: they
// are all that most people see.
import { useState } from 'preact/hooks';

import { use_answer } from '../answers.js';
import { cores, either, memory, number, span, text, word } from '../language.js';
import { Held } from '../parts/held.jsx';
import { Answer, Empty } from '../parts/state.jsx';
import { Table, Unknown } from '../parts/table.jsx';
import { keep_settings, route_of } from '../router.js';

const page_size = 50;

export function Pods({ me, on_refused, settings }) {
  const [namespace, set_namespace] = useState(settings.namespace ?? '');
  const [offset, set_offset] = useState(0);
  const query = new URLSearchParams({ ...(namespace && { namespace }), offset, limit: page_size });
  const answer = use_answer(`pods?${query}`, 'pods', on_refused);
  function change_namespace(chosen) {
    set_namespace(chosen);
    set_offset(0);
    keep_settings({ namespace: chosen });
  }
  return (
    <section>
      <h1 tabindex="-1">{text('view.pods')}</h1>
      <div class="controls">
        <label>{text('column.namespace')} <select value={namespace} onChange={(event) => change_namespace(event.target.value)}>
          <option value="">{text('filter.all')}</option>
          {(me.namespaces.includes(namespace) || !namespace ? me.namespaces : [namespace, ...me.namespaces])
            .map((option) => <option key={option} value={option}>{option}</option>)}
        </select></label>
        {namespace && me.views.history && (
          <a href={route_of('history', undefined, { chart: 'namespace_utilization', range: '24h', namespace })}>{text('pods.day')}</a>
        )}
      </div>
      <Answer answer={answer}>{({ total, message, messages, pods }) => (
        <>
          <p class="summary" role="status">{text('pods.summary', { total })}</p>
          {message && <p class="quiet">{text('column.use')}: {either(messages) || message}</p>}
          {pods.length === 0 ? <Empty>{text('pods.empty')}</Empty> : (
            <Table label={text('view.pods')} columns={[['column.pod'], ['column.node'], ['column.cards'], ['column.cores', true], ['column.memory', true],
              ['column.use', true], ['column.state'], ['column.restarts', true], ['column.age', true]]}>
              {pods.map((pod) => (
                <tr key={`${pod.namespace}/${pod.name}`}>
                  <th scope="row" class="pod_name"><a href={route_of('pod', `${pod.namespace}/${pod.name}`)}><code>{pod.namespace}/<wbr />{pod.name}</code></a></th>
                  <td class="one_line">{me.views.node ? <a href={route_of('node', pod.node)}>{pod.node}</a> : pod.node}</td>
                  <td><Held cards={pod.cards} /></td>
                  <td class="number">{cores(pod.cores)}</td>
                  <td class="number">{memory(pod.memoryMiB)}</td>
                  <td class="number">{pod.use === null ? <Unknown /> : cores(pod.use)}</td>
                  <td class={pod.reason ? 'state bad' : ''}>{[word('pod_phase', pod.phase), pod.reason].filter(Boolean).join(' · ')}</td>
                  <td class="number">{number(pod.restarts)}</td>
                  <td class="number one_line">{pod.since ? span(Date.now() / 1000 - pod.since) : <Unknown />}</td>
                </tr>
              ))}
            </Table>
          )}
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

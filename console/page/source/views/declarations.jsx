// What is declared, and which pods violate it.
import { use_answer } from '../answers.js';
import { either, number, text, word } from '../language.js';
import { Answer, Empty } from '../parts/state.jsx';
import { Hidden, Table } from '../parts/table.jsx';

export function Declarations({ on_refused }) {
  const answer = use_answer('declarations', 'declarations', on_refused);
  return (
    <section>
      <h1 tabindex="-1">{text('view.declarations')}</h1>
      <Answer answer={answer}>{(body) => (
        <>
          <p>{text('declarations.summary', { namespace: body.namespace, enforcement: word('enforcement', body.enforcement) })}</p>
          {body.resources.length === 0 ? <Empty>{text('declarations.empty')}</Empty> : (
            <Table label={text('view.declarations')}
              columns={[['column.declaration'], ['column.resource'], ['column.label'], ['column.verdict'], ['column.nodes', true]]}>
              {body.resources.map((row) => (
                <tr key={row.name} class={row.verdict === 'refused' ? 'bad' : ''}>
                  <th scope="row"><code>{row.name}</code></th>
                  <td>{row.key ? <code>{row.key}</code> : '–'}</td>
                  <td>{either(row.label) || '–'}</td>
                  <td>{text(`verdict_sign.${row.verdict}`)} {word('verdict', row.verdict)}
                    {row.findings.length > 0 && (
                      <ul class="plain">{row.findings.map((finding, index) => <li key={index}>{either(finding)} <code>{finding.code}</code></li>)}</ul>
                    )}</td>
                  <td class="number">{row.nodes === null ? <Hidden /> : number(row.nodes)}</td>
                </tr>
              ))}
            </Table>
          )}
          <h2>{text('declarations.violations')}</h2>
          <p class="quiet">{text('declarations.looked_at', { count: body.lookedAt })}</p>
          {body.violations.length === 0 ? <Empty>{text('declarations.no_violation')}</Empty> : (
            <Table label={text('declarations.violations')} columns={[['column.pod'], ['column.reason']]}>
              {body.violations.map((row) => (
                <tr key={`${row.namespace}/${row.pod}`}>
                  <th scope="row"><code>{row.namespace}/{row.pod}</code></th>
                  <td><ul class="plain">{row.reasons.map((reason, index) => <li key={index}>{either(reason)}</li>)}</ul></td>
                </tr>
              ))}
            </Table>
          )}
          {body.moreViolations > 0 && <p>{text('declarations.more', { count: body.moreViolations })}</p>}
        </>
      )}</Answer>
    </section>
  );
}

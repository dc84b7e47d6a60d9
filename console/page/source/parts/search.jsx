// Search: "/" from anywhere, then a part of a name. Views, nodes and namespaces; arrow keys choose, Enter goes there.
import { useEffect, useRef, useState } from 'preact/hooks';

import { text } from '../language.js';
import { route_of } from '../router.js';
import { ask } from '../session.js';

const most = 12;

/// [{kind, label, route}] that have all words of `query`, those that begin with it first.
export function matches_of(entries, query) {
  const words = query.trim().toLowerCase().split(/\s+/).filter(Boolean);
  if (words.length === 0) return [];
  const found = entries.filter(({ label }) => words.every((part) => label.toLowerCase().includes(part)));
  const begins = ({ label }) => (label.toLowerCase().startsWith(words[0]) ? 0 : 1);
  return found.sort((one, other) => begins(one) - begins(other)).slice(0, most);
}

const is_typing = () => document.activeElement?.matches('input, textarea, select');

export function Search({ me, views }) {
  const input = useRef(null);
  const [query, set_query] = useState('');
  const [nodes, set_nodes] = useState([]);
  const [chosen, set_chosen] = useState(0);
  useEffect(() => {
    const listener = (event) => {
      if (event.key !== '/' || event.ctrlKey || event.metaKey || event.altKey || is_typing()) return;
      event.preventDefault();
      input.current.focus();
      input.current.select();
    };
    addEventListener('keydown', listener);
    return () => removeEventListener('keydown', listener);
  }, []);
  async function read_nodes() {
    if (!me.views.fleet || nodes.length) return;
    const { body } = await ask('fleet').catch(() => ({}));
    if (body) set_nodes(body.nodes.map(([name]) => name));
  }
  const entries = query ? [
    ...views.map((view) => ({ kind: 'view', label: text(`view.${view}`), route: route_of(view) })),
    ...nodes.map((name) => ({ kind: 'node', label: name, route: route_of('node', name) })),
    ...me.namespaces.map((name) => ({ kind: 'namespace', label: name, route: route_of('waiting', name) })),
  ] : [];
  const found = matches_of(entries, query);
  const current = Math.min(chosen, Math.max(0, found.length - 1));
  function go(match) {
    set_query('');
    location.hash = match.route;
  }
  function on_key(event) {
    if (event.key === 'Escape') {
      set_query('');
      input.current.blur();
    }
    if (event.key === 'Enter' && found[current]) go(found[current]);
    const step = { ArrowDown: 1, ArrowUp: -1 }[event.key];
    if (!step || found.length === 0) return;
    event.preventDefault();
    set_chosen((current + step + found.length) % found.length);
  }
  return (
    <div class="search" role="search">
      <input ref={input} type="search" role="combobox" aria-label={text('search.label')} placeholder={text('search.hint')} value={query}
        aria-expanded={found.length > 0} aria-controls="search_matches" aria-autocomplete="list" autocomplete="off" spellcheck={false}
        aria-activedescendant={found.length ? `search_match_${current}` : undefined} onFocus={read_nodes}
        onInput={(event) => { set_query(event.target.value); set_chosen(0); }} onKeyDown={on_key} onBlur={() => set_query('')} />
      <ul id="search_matches" role="listbox" aria-label={text('search.label')} hidden={found.length === 0}>
        {found.map((match, index) => (
          <li key={match.route} id={`search_match_${index}`} role="option" aria-selected={index === current}
            onPointerDown={(event) => { event.preventDefault(); go(match); }}>
            {match.label} <span class="quiet">{text(`search.${match.kind}`)}</span>
          </li>
        ))}
      </ul>
    </div>
  );
}

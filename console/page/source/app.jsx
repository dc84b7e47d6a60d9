// What is on the page: the form to sign in, or navigation and one view.
import { Component } from 'preact';
import { useEffect, useRef, useState } from 'preact/hooks';

import { announce } from './answers.js';
import { clock, language, languages, moment, set_language, text } from './language.js';
import { Search } from './parts/search.jsx';
import { SignIn } from './parts/sign_in.jsx';
import { read_route, route_of } from './router.js';
import { ask, end_session, forget, has_session, keep_session, session } from './session.js';
import { follow } from './stream.js';
import { current_theme, set_theme, themes } from './theme.js';
import { Capacity } from './views/capacity.jsx';
import { Cost } from './views/cost.jsx';
import { Declarations } from './views/declarations.jsx';
import { Fleet } from './views/fleet.jsx';
import { History } from './views/history.jsx';
import { Namespaces } from './views/namespaces.jsx';
import { Node } from './views/node.jsx';
import { Overview } from './views/overview.jsx';
import { Pod } from './views/pod.jsx';
import { Pods } from './views/pods.jsx';
import { Waiting } from './views/waiting.jsx';

const views = {
  overview: Overview,
  fleet: Fleet,
  pods: Pods,
  waiting: Waiting,
  namespaces: Namespaces,
  cost: Cost,
  declarations: Declarations,
  capacity: Capacity,
  history: History,
};

// Views of one thing, by the view that lists them.
const details = { node: [Node, 'fleet'], pod: [Pod, 'pods'] };

function use_route() {
  const [route, set_route] = useState(() => read_route(location.hash));
  useEffect(() => {
    const listener = () => set_route(read_route(location.hash));
    addEventListener('hashchange', listener);
    return () => removeEventListener('hashchange', listener);
  }, []);
  return route;
}

/// A view that cannot show an answer says so; navigation stays.
class Boundary extends Component {
  componentDidCatch(error) {
    this.setState({ error });
  }
  render({ children }, { error }) {
    if (!error) return children;
    return <p class="notice bad" role="alert">{text('error.page', { message: String(error.message) })}</p>;
  }
}

function Choice({ id, label, value, values, on_change }) {
  return (
    <label class="choice" for={id}>
      <span class="unseen">{label}</span>
      <select id={id} value={value} onChange={(event) => on_change(event.target.value)}>
        {values.map(([name, shown]) => <option key={name} value={name}>{shown}</option>)}
      </select>
    </label>
  );
}

function Header({ me, route, live, seen, redraw, sign_out }) {
  const shown = Object.keys(views).filter((view) => me?.views[view]);
  const current = details[route.view]?.[1] ?? route.view;
  return (
    <header>
      <a class="skip" href="#main" onClick={(event) => { event.preventDefault(); document.querySelector('h1')?.focus(); }}>
        {text('skip')}
      </a>
      <div class="bar">
        <span class="brand">Quartermaster</span>
        {me && (
          <nav aria-label={text('nav')}>
            {shown.map((view) => (
              <a key={view} href={route_of(view)} aria-current={view === current ? 'page' : undefined}>{text(`view.${view}`)}</a>
            ))}
          </nav>
        )}
        <div class="tools">
          {me && <Search me={me} views={shown} />}
          {me && <span class={`live ${live}`} role="status">{text(`live.${live}`, { time: clock(seen) })}</span>}
          <Choice id="language" label={text('language')} value={language()} values={Object.entries(languages)}
            on_change={(name) => { set_language(name); redraw(); }} />
          <Choice id="theme" label={text('theme')} value={current_theme()} values={themes.map((name) => [name, text(`theme.${name}`)])}
            on_change={(name) => { set_theme(name); redraw(); }} />
          {me && <span class="user" title={me.user}>{me.user.replace(/^system:serviceaccount:/, '')}</span>}
          {me && session.by !== 'proxy' && <button type="button" title={me.user} onClick={sign_out}>{text('sign_out')}</button>}
        </div>
      </div>
    </header>
  );
}

export function App() {
  const [me, set_me] = useState(null);
  const [is_waiting, set_is_waiting] = useState(true); // it is not known yet whether someone is signed in
  const [problem, set_problem] = useState(null);
  const [live, set_live] = useState('waiting');
  const [seen, set_seen] = useState(() => Date.now() / 1000); // when the stream was last open
  const [unled, set_unled] = useState(null); // when the operator last renewed its lease; null: one leads
  const [, set_drawn] = useState(0);
  const is_first_route = useRef(true);
  const route = use_route();
  const redraw = () => set_drawn((count) => count + 1);

  function leave(error) {
    forget();
    set_me(null);
    set_problem(error);
  }
  async function sign_in() {
    set_problem(null);
    if (session.token) await keep_session();
    const { body, error } = await ask('me');
    set_is_waiting(false);
    if (error) {
      leave(error);
      return;
    }
    if (!views[route.view] && !details[route.view]) {
      location.replace(route_of(Object.keys(views).find((view) => body.views[view]) ?? 'overview'));
    }
    set_me(body);
  }
  async function sign_out() {
    await end_session();
    leave(null);
  }
  const on_refused = () => leave({ status: 401, code: 'unauthenticated' });

  useEffect(() => {
    const begin = async () => {
      if (session.token || await has_session() || session.by === 'proxy') await sign_in();
      else set_is_waiting(false);
    };
    begin();
  }, []);
  useEffect(() => {
    if (!me) return undefined;
    return follow(announce, (state, seconds = 0) => {
      if (state === 'refused') {
        on_refused();
        return;
      }
      set_live((last) => {
        if (last === 'live' || state === 'live') set_seen(Date.now() / 1000 - seconds);
        return state;
      });
    }, (seconds) => set_unled(seconds === null ? null : Date.now() / 1000 - seconds));
  }, [me]);
  useEffect(() => {
    document.title = `${document.querySelector('h1')?.textContent ?? ''} · Quartermaster`;
  });
  // Who follows a link hears where they are. Not at the first view: the page has just been opened there.
  useEffect(() => {
    if (is_first_route.current) is_first_route.current = !me;
    else document.querySelector('h1')?.focus();
  }, [me, route.view, route.argument]);

  const View = details[route.view]?.[0] ?? views[route.view];
  return (
    <>
      <Header me={me} route={route} live={live} seen={seen} redraw={redraw} sign_out={sign_out} />
      <main id="main">
        {!me && !is_waiting && <SignIn problem={problem} on_token={(token) => { session.token = token; sign_in(); }} />}
        {me && unled !== null && <p class="notice bad leaderless" role="status">{text('leaderless', { time: moment(unled) })}</p>}
        {me?.lacksNamespaces && <p class="quiet" role="status">{text('lacks_namespaces')}</p>}
        {me && View && (
          <Boundary key={`${route.view}/${route.argument}?${JSON.stringify(route.settings)}`}>
            <View me={me} name={route.argument} settings={route.settings} on_refused={on_refused} drawing={`${language()} ${current_theme()}`}
              live={live} seen={seen} />
          </Boundary>
        )}
        {me && !View && <h1 tabindex="-1">{text('error.view', { view: route.view })}</h1>}
      </main>
    </>
  );
}

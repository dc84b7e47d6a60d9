// The form for the caller's token. It is no HTML form that could be sent anywhere: the token goes to the console alone.
// Behind a proxy that signs people in there is none: the proxy asks who loads the page.
import { useRef } from 'preact/hooks';

import { text } from '../language.js';
import { session } from '../session.js';
import { error_text } from './state.jsx';

export function SignIn({ problem, on_token }) {
  const input = useRef(null);
  const by_link = session.by === 'link';
  function submit(event) {
    event.preventDefault();
    // Pasted tokens come with line breaks.
    const token = input.current.value.replace(/\s+/g, '');
    input.current.value = '';
    if (token) on_token(token);
  }
  if (session.by === 'proxy') {
    return (
      <div class="sign_in">
        <h1 tabindex="-1">{text('sign_in.title')}</h1>
        {problem && <p class="notice bad" role="alert">{error_text(problem)}</p>}
        <p>{text('sign_in.proxy')}</p>
        <button type="button" class="primary" onClick={() => location.reload()}>{text('sign_in.reload')}</button>
      </div>
    );
  }
  return (
    <form class="sign_in" onSubmit={submit}>
      <h1 tabindex="-1">{text('sign_in.title')}</h1>
      {by_link && <p class="notice">{text('sign_in.link')} <code>quartermaster console</code></p>}
      {problem && <p class="notice bad" role="alert">{error_text(problem)}</p>}
      <label for="token">{text(by_link ? 'sign_in.link_token' : 'sign_in.token')}</label>
      <input id="token" ref={input} type="password" autocomplete="off" spellcheck={false} required aria-describedby="token_help" />
      <p id="token_help">{text(by_link ? 'sign_in.link_help' : 'sign_in.help')}</p>
      {!by_link && <pre><code>kubectl create token NAME -n NAMESPACE --audience quartermaster-console</code></pre>}
      <button type="submit" class="primary">{text('sign_in.button')}</button>
    </form>
  );
}

// What the page knows of its caller, and the last answer to each address. A token is exchanged for a cookie that no
// script can read; then a page that is loaded again is signed in. Where the browser keeps no cookie, the token stays in
// this memory, and a page that is loaded again asks for it again.

const answers = new Map(); // address -> {etag, body}
const longest_memory = 40; // answers

/// `by`: what signs in. `link` on a laptop; `proxy`: one in front of the console sends the token; or `token`.
export const session = { token: null, by: 'token' };

/// Takes the token of a link ("#token=...") and removes it from the address, so that it is in no bookmark or history.
export function take_token_from_link() {
  const match = location.hash.match(/^#token=(.+)$/);
  if (!match) return;
  session.token = decodeURIComponent(match[1]);
  history.replaceState(null, '', location.pathname + location.search);
}

/// Forgets the token and all answers.
export function forget() {
  session.token = null;
  answers.clear();
}

/// What says who asks: the token, or nothing where the cookie does.
export const credentials = () => (session.token ? { Authorization: `Bearer ${session.token}` } : {});

/// Does a cookie or a proxy sign in?
export async function has_session() {
  const answer = await fetch('api/v1/session', { cache: 'no-store', redirect: 'error' }).then((response) => response.json()).catch(() => null);
  if (answer?.by) session.by = answer.by;
  return answer?.signedIn === true;
}

/// Exchanges the token for the cookie. Where that does not work, the next question says what is wrong with the token.
export async function keep_session() {
  const made = await fetch('api/v1/session', { method: 'POST', headers: credentials(), redirect: 'error' }).catch(() => null);
  if (made?.ok && await has_session()) session.token = null;
}

/// The browser forgets the cookie.
export async function end_session() {
  await fetch('api/v1/session', { method: 'DELETE', redirect: 'error' }).catch(() => null);
}

/// On a slow line 5,000 nodes take half a minute. What takes longer will not come: the line broke without a word.
const longest_answer_ms = 90000;

/// Asks for an address below api/v1/. Never throws, except for AbortError. Answers {body, is_new} or
/// {error: {status, code, message, retry_s}}; status 0: there was no answer.
export async function ask(address, signal) {
  const known = answers.get(address);
  const headers = { ...credentials(), Accept: 'application/json' };
  if (known) headers['If-None-Match'] = known.etag;
  try {
    const limit = AbortSignal.timeout(longest_answer_ms);
    const response = await fetch(`api/v1/${address}`, { headers, signal: signal ? AbortSignal.any([signal, limit]) : limit, cache: 'no-store',
      redirect: 'error' });
    if (response.status === 304 && known) return { body: known.body, is_new: false };
    const body = await response.json().catch((error) => {
      // A proxy on the way may answer with a page of its own. All else is an answer that was cut off: that is asked for again.
      if (error.name !== 'SyntaxError') throw error;
      return null;
    });
    if (!response.ok || !body) return { error: read_error(response, body) };
    keep(address, response.headers.get('ETag'), body);
    return { body, is_new: true };
  } catch (error) {
    if (error.name === 'AbortError') throw error;
    return { error: { status: 0, code: 'unreachable', message: '', retry_s: 5 } };
  }
}

function read_error(response, body) {
  const { code = 'unreadable', message = '', messages } = body?.error ?? {};
  const seconds = Number(response.headers.get('Retry-After'));
  return { status: response.status, code, message, messages, retry_s: seconds > 0 ? Math.min(seconds, 300) : null };
}

function keep(address, etag, body) {
  answers.delete(address);
  if (!etag) return;
  answers.set(address, { etag, body });
  if (answers.size > longest_memory) answers.delete(answers.keys().next().value);
}

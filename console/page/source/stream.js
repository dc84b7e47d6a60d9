// Live updates: server-sent events, read from a fetch, because EventSource sends no Authorization where there is no cookie. The stream is open
// only while the page can be seen: the server has few places.
import { credentials } from './session.js';

/// Cuts a stream of text into events. Give it each piece as it comes; it returns the events that are complete. Of an
/// event without an end it keeps `longest` characters at most, and returns null when there are more.
export function event_reader(longest = 65536) {
  let rest = '';
  return (piece) => {
    rest = (rest + piece).replace(/\r\n/g, '\n');
    const parts = rest.split('\n\n');
    rest = parts.pop();
    if (rest.length > longest) return null;
    return parts.map(read_event).filter((event) => event.data !== '');
  };
}

function read_event(text) {
  const event = { name: 'message', data: '' };
  for (const line of text.split('\n')) {
    const [, field, value] = line.match(/^([a-z]+): ?(.*)$/) ?? [];
    if (field === 'event') event.name = value;
    if (field === 'data') event.data += (event.data && '\n') + value;
  }
  return event;
}

/// How long to wait before the next try, in milliseconds: twice as long each time, up to half a minute, and not at the
/// same moment as all other pages.
export function pause_ms(tries, random = Math.random()) {
  return Math.min(1000 * 2 ** tries, 30000) * (0.5 + random / 2);
}

/// The console says something every 15 seconds. A line that broke without a word, as when a laptop slept, says nothing.
const longest_silence_ms = 45000;

/// Follows the stream until the returned function is called. `on_views` gets the names of views that changed; `on_state`
/// gets 'live', 'silent' with the seconds for which the API server has not answered, 'waiting' (for the next try) or
/// 'refused' (the token is no longer taken). `on_leader` gets null when an operator leads, or the seconds for which none
/// has.
export function follow(on_views, on_state, on_leader = () => {}) {
  let controller = null;
  let timer = null;
  let tries = 0;
  let silence = null;
  let is_over = false;

  async function read() {
    controller = new AbortController();
    const { signal } = controller;
    const listen = () => {
      clearTimeout(silence);
      silence = setTimeout(() => controller?.abort(), longest_silence_ms);
    };
    listen();
    const headers = { ...credentials(), Accept: 'text/event-stream' };
    const response = await fetch('api/v1/stream', { headers, signal, cache: 'no-store', redirect: 'error' });
    if (response.status === 401) return 'refused';
    if (!response.ok) return Number(response.headers.get('Retry-After')) * 1000;
    on_state('live');
    let is_first = true; // the first event of a stream comes with `leaderless`, or an operator leads
    const events = event_reader();
    const reader = response.body.pipeThrough(new TextDecoderStream()).getReader();
    for (;;) {
      const { done, value } = await reader.read();
      if (done) return 0;
      listen();
      const found = events(value);
      if (!found) throw new Error('an event without an end');
      tries = 0;
      for (const event of found) {
        if (event.name === 'changed') on_views(JSON.parse(event.data).views);
        if (event.name === 'leaderless') on_leader(JSON.parse(event.data).seconds);
        else if (event.name === 'led' || (is_first && !found.some(({ name }) => name === 'leaderless'))) on_leader(null);
        is_first = false;
        if (event.name === 'silent') on_state('silent', JSON.parse(event.data).seconds);
        if (event.name === 'heard') on_state('live');
      }
    }
  }

  async function run() {
    timer = null;
    let pause = 0;
    try {
      pause = await read();
    } catch {
      // The connection broke, or what came is no event: try again.
    }
    clearTimeout(silence);
    controller?.abort();
    controller = null;
    if (is_over || document.hidden) return;
    if (pause === 'refused') {
      is_over = true;
      on_state('refused');
      return;
    }
    on_state('waiting');
    timer = setTimeout(run, Math.max(pause || 0, pause_ms(tries++)));
  }

  function on_visibility() {
    if (document.hidden) {
      clearTimeout(timer);
      timer = null;
      controller?.abort();
    } else if (!controller && !timer && !is_over) {
      run();
    }
  }

  document.addEventListener('visibilitychange', on_visibility);
  run();
  return () => {
    is_over = true;
    clearTimeout(timer);
    controller?.abort();
    document.removeEventListener('visibilitychange', on_visibility);
  };
}

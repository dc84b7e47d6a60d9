// A view's answer, asked for again when the stream says that the view changed.
import { useEffect, useRef, useState } from 'preact/hooks';

import { ask } from './session.js';

const listeners = new Set();

/// Tells all answers on the page that these views changed.
export function announce(views) {
  for (const listener of listeners) listener(views);
}

/// Between two questions for one view. A cluster that changes all the time is shown as often as this.
const shortest_pause_ms = 3000;

/// {body, error, is_loading} of an address below api/v1/. `view` is its name in the stream. An error leaves the last
/// body in place, and the question is asked again where that can help.
export function use_answer(address, view, on_refused) {
  const [state, set_state] = useState({ address, is_loading: true });
  const latest = useRef(0);
  useEffect(() => {
    const controller = new AbortController();
    let timer = null;
    let is_asking = false;
    let is_stale = false;

    async function load() {
      timer = null;
      is_asking = true;
      is_stale = false;
      let answer;
      try {
        answer = await ask(address, controller.signal);
      } catch {
        return; // the view is gone
      }
      is_asking = false;
      latest.current = performance.now();
      if (controller.signal.aborted) return;
      if (answer.error?.status === 401) {
        on_refused();
        return;
      }
      set_state((last) => {
        const kept = last.address === address ? last.body : undefined;
        if (answer.error) return { address, body: kept, error: answer.error };
        return last.address === address && last.body === answer.body && !last.error ? last : { address, body: answer.body };
      });
      if (answer.error?.retry_s) timer = setTimeout(load, answer.error.retry_s * 1000);
      else if (is_stale) plan();
    }
    function plan() {
      if (is_asking) is_stale = true;
      else if (!timer) timer = setTimeout(load, Math.max(0, latest.current + shortest_pause_ms - performance.now()));
    }
    const listener = (views) => { if (views.includes(view)) plan(); };

    set_state((last) => (last.address === address ? last : { address, is_loading: true }));
    load();
    listeners.add(listener);
    return () => {
      listeners.delete(listener);
      clearTimeout(timer);
      controller.abort();
    };
  }, [address]);
  return state.address === address ? state : { address, is_loading: true };
}

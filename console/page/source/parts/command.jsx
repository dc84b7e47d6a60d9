// A command with a button that copies it: the page changes nothing, and the work is done in a terminal.
import { useEffect, useRef, useState } from 'preact/hooks';

import { text } from '../language.js';

const shown_ms = 2000;

/// Browsers keep the clipboard from pages that came by plain HTTP from elsewhere; there the text goes by a selection.
async function copy(command) {
  try {
    await navigator.clipboard.writeText(command);
  } catch {
    const area = document.createElement('textarea');
    area.value = command;
    area.className = 'unseen';
    document.body.append(area);
    area.select();
    document.execCommand('copy');
    area.remove();
  }
}

export function Command({ command }) {
  const [is_copied, set_copied] = useState(false);
  const timer = useRef(null);
  useEffect(() => () => clearTimeout(timer.current), []);
  async function on_click(event) {
    const button = event.currentTarget;
    await copy(command);
    button.focus();
    set_copied(true);
    clearTimeout(timer.current);
    timer.current = setTimeout(() => set_copied(false), shown_ms);
  }
  return (
    <span class="command">
      <code>{command}</code>
      <button type="button" onClick={on_click} aria-label={text('copy.command', { command })}>
        {text(is_copied ? 'copy.done' : 'copy.button')}
      </button>
      <span class="unseen" role="status">{is_copied && text('copy.done')}</span>
    </span>
  );
}

// Tables and bars that several views have.
import { text } from '../language.js';

/// `columns`: [key of the heading, is_number]. A wide table scrolls by itself, also by keyboard.
export function Table({ label, columns, children }) {
  return (
    <div class="wide" role="region" aria-label={label} tabindex="0">
      <table>
        <thead><tr>{columns.map(([key, is_number]) => <th key={key} scope="col" class={is_number ? 'number' : ''}>{text(key)}</th>)}</tr></thead>
        <tbody>{children}</tbody>
      </table>
    </div>
  );
}

/// A part of a whole as a bar, with its numbers as text. `parts`: [style, amount], from the left.
export function Bar({ parts, whole, label }) {
  return (
    <span class="amount">
      <span class="meter" aria-hidden="true">
        {parts.map(([style, amount]) => <span key={style} class={style} style={{ width: `${whole > 0 ? Math.min(100, (100 * amount) / whole) : 0}%` }} />)}
      </span>
      <span>{label}</span>
    </span>
  );
}

/// What the parts of the bars below it are: [style, key of the message].
export function Key({ parts }) {
  return (
    <ul class="legend" aria-label={text('legend')}>
      {parts.map(([style, key]) => <li key={key}><span class="meter sample" aria-hidden="true"><span class={style} /></span>{text(key)}</li>)}
    </ul>
  );
}

/// Of what the caller may not see. "Not known" would send them to look for a fault.
export const Hidden = () => <span class="quiet">{text('hidden')}</span>;

export const Unknown = () => <span class="quiet">{text('unknown')}</span>;

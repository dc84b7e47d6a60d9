// What a view shows in place of its answer, or above an answer that is old.
import { either, text, number } from '../language.js';

export function error_text({ status, code, message, messages, retry_s }) {
  const known = ['unauthenticated', 'forbidden', 'not_found', 'too_many_requests', 'not_ready', 'unreachable', 'misdirected'];
  const headline = text(known.includes(code) ? `error.${code}` : 'error.other', { status: String(status) });
  return [headline, either(messages) || message, retry_s && text('error.retry', { seconds: number(retry_s) })].filter(Boolean).join(' ');
}

/// Shows children(body) once there is one.
export function Answer({ answer, children }) {
  const { body, error, is_loading } = answer;
  return (
    <>
      {error && <p class="notice bad" role="alert">{error_text(error)} {body && text('error.old')}</p>}
      {is_loading && <p class="notice" role="status">{text('loading')}</p>}
      {body && children(body)}
    </>
  );
}

export const Empty = ({ children }) => <p class="notice">{children}</p>;

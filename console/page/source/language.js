// Messages in the language of the page. messages/en.json and messages/zh.json have the same keys (a test compares them).
import { read_setting, write_setting } from './settings.js';
import en from './messages/en.json';
import zh from './messages/zh.json';

export const languages = { en: 'English', zh: '中文' };
const messages = { en, zh };
let current = read_setting('language', Object.keys(languages)) ?? (navigator.language?.startsWith('zh') ? 'zh' : 'en');
document.documentElement.lang = current;

export const language = () => current;

export function set_language(name) {
  current = name;
  document.documentElement.lang = name;
  write_setting('language', name);
}

/// The message of a key, with {name} replaced by values.name. Numbers are written as the language writes them.
export function text(key, values = {}) {
  const message = messages[current][key] ?? key;
  return message.replace(/\{(\w+)\}/g, (hole, name) => {
    const value = values[name];
    return typeof value === 'number' ? number(value) : value ?? hole;
  });
}

/// The message of a word of the API ("mode.vgpu"), or the word itself where we have none: the server may be newer.
export function word(kind, code) {
  return messages[current][`${kind}.${code}`] ?? code;
}

/// Of texts that come in both languages.
export const either = (texts) => texts?.[current] || texts?.en || '';

// Formats are kept: to make one takes longer than to draw a card.
const formats = new Map();
function format_of(options) {
  const key = `${current} ${JSON.stringify(options)}`;
  if (!formats.has(key)) formats.set(key, new Intl.NumberFormat(current, options));
  return formats.get(key);
}

export const number = (value, digits = 0) => format_of({ maximumFractionDigits: digits }).format(value);

export const percent = (ratio) => format_of({ style: 'percent', maximumFractionDigits: 0 }).format(ratio);

/// Hundredths of a card as cards.
export const cores = (value) => number(value / 100, 2);

/// MiB as the unit that is short to read.
export function memory(mib) {
  if (mib >= 1048576) return `${number(mib / 1048576, 1)} TiB`;
  return mib >= 1024 ? `${number(mib / 1024, 1)} GiB` : `${number(mib)} MiB`;
}

const time_parts = { hour: '2-digit', minute: '2-digit', hourCycle: 'h23', timeZoneName: 'short' };

/// Times say their zone: who reads them next to a log in UTC would be wrong by hours.
export function moment(seconds) {
  return new Intl.DateTimeFormat(current, { year: 'numeric', month: 'short', day: 'numeric', ...time_parts }).format(seconds * 1000);
}

/// The time of day, to the second.
export function clock(seconds) {
  return new Intl.DateTimeFormat(current, { ...time_parts, second: '2-digit' }).format(seconds * 1000);
}

const spans = [['day', 86400], ['hour', 3600], ['minute', 60], ['second', 1]];

/// A length of time in its largest unit: "2 hours".
export function span(seconds) {
  const [unit, length] = spans.find(([, each]) => seconds >= each) ?? spans.at(-1);
  return format_of({ style: 'unit', unit, unitDisplay: 'long', maximumFractionDigits: 0 }).format(Math.max(0, Math.floor(seconds / length)));
}

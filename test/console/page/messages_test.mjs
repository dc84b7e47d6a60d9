// messages/en.json and zh.json: the same keys, the same places for values, and every key that the page asks for.
import assert from 'node:assert/strict';
import { readFileSync, readdirSync } from 'node:fs';
import { test } from 'node:test';

const source = new URL('../../../console/page/source/', import.meta.url);
const read = (name) => readFileSync(new URL(name, source), 'utf8');
const [en, zh] = ['en', 'zh'].map((name) => JSON.parse(read(`messages/${name}.json`)));

test('both languages have the same messages', () => {
  assert.deepEqual(Object.keys(zh), Object.keys(en));
});

test('a message has the same places for values in both languages', () => {
  const places = (message) => (message.match(/\{\w+\}/g) ?? []).sort();
  for (const key of Object.keys(en)) assert.deepEqual(places(zh[key]), places(en[key]), key);
});

test('no message is empty, and no Chinese one is left in English', () => {
  const same = ['column.pod', ...Object.keys(en).filter((key) => key.includes('_sign.'))];
  for (const key of Object.keys(en)) {
    assert.notEqual(en[key], '', key);
    if (!same.includes(key) && /[a-z]{4}/i.test(en[key].replace(/\{\w+\}/g, ''))) assert.notEqual(zh[key], en[key], key);
  }
});

test('every key in the sources has a message, and every message is used', () => {
  const files = ['', 'parts/', 'views/'].flatMap((folder) => (
    readdirSync(new URL(folder, source)).filter((name) => /\.jsx?$/.test(name)).map((name) => folder + name)));
  const text = files.map(read).join('\n');
  const literal = new Set([...text.matchAll(/'([a-z_]+(?:\.[a-z_]+)?)'/g)].map(([, key]) => key));
  const asked = [...text.matchAll(/\btext\('([^']+)'/g)].map(([, key]) => key);
  for (const key of asked) assert.ok(key in en, `no message ${key}`);
  // Keys that are put together: text(`view.${name}`), word('mode', ...).
  const kinds = new Set([...text.matchAll(/`([a-z_]+)[._]\$\{/g), ...text.matchAll(/\bword\('([a-z_]+)'/g)].map(([, kind]) => kind));
  kinds.add('legend'); // legend.use_0 to 4
  for (const key of Object.keys(en)) assert.ok(literal.has(key) || kinds.has(key.split('.')[0]), `message ${key} is not used`);
});

// Parts of the page that need no browser, and the shapes of the answers that the other tests use.
import assert from 'node:assert/strict';
import { execFileSync } from 'node:child_process';
import { cpSync, mkdtempSync, readFileSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { test } from 'node:test';
import { fileURLToPath } from 'node:url';

import { visible_rows } from '../../../console/page/source/parts/window.js';
import { read_route, route_of } from '../../../console/page/source/router.js';
import { event_reader, pause_ms } from '../../../console/page/source/stream.js';
import { cluster_of } from './kit/answers.mjs';

test('events are read whatever pieces they come in', () => {
  const stream = ': still here\n\nevent: changed\ndata: {"views":["fleet"]}\n\ndata: a\r\ndata: b\r\n\r\n';
  for (let size = 1; size <= stream.length; size++) {
    const read = event_reader();
    const events = [];
    for (let start = 0; start < stream.length; start += size) events.push(...read(stream.slice(start, start + size)));
    assert.deepEqual(events, [{ name: 'changed', data: '{"views":["fleet"]}' }, { name: 'message', data: 'a\nb' }], `pieces of ${size}`);
  }
});

test('an event without an end is refused', () => {
  const read = event_reader(100);
  assert.deepEqual(read('data: '.padEnd(100, 'x')), []);
  assert.equal(read('x'), null);
});

test('tries to connect again come less and less often, up to half a minute', () => {
  assert.deepEqual([0, 1, 2, 10].map((tries) => pause_ms(tries, 1)), [1000, 2000, 4000, 30000]);
  assert.equal(pause_ms(0, 0), 500);
});

test('rows in sight, with some to spare, and never beyond the ends', () => {
  assert.deepEqual(visible_rows(5000, 10, 0, 100, 4), { first: 0, last: 14 });
  assert.deepEqual(visible_rows(5000, 10, 1005, 100, 4), { first: 96, last: 116 });
  assert.deepEqual(visible_rows(5000, 10, 49900, 100, 4), { first: 4986, last: 5000 });
  assert.deepEqual(visible_rows(3, 10, 49900, 100, 4), { first: 3, last: 3 });
  assert.deepEqual(visible_rows(0, 10, 0, 100, 4), { first: 0, last: 0 });
  for (let top = 0; top < 49900; top += 7) {
    const { first, last } = visible_rows(5000, 10, top, 100, 4);
    assert.ok(first * 10 <= top && last * 10 >= top + 100 && last - first <= 20, `${first} to ${last} at ${top}`);
  }
});

test('an address keeps any name', () => {
  for (const name of ['gpu-1', 'a/b', '100%', '<b>', '节点']) assert.deepEqual(read_route(route_of('node', name)), { view: 'node', argument: name });
  assert.deepEqual(read_route('#/node/%'), { view: 'node', argument: '' });
});

test('another folder gives the same bytes', () => {
  const page = fileURLToPath(new URL('../../../console/page', import.meta.url));
  const folder = mkdtempSync(join(tmpdir(), 'another folder '));
  for (const name of ['source', 'node_modules', 'package.json', 'package-lock.json', 'build.mjs']) {
    cpSync(join(page, name), join(folder, name), { recursive: true });
  }
  execFileSync('node', ['build.mjs'], { cwd: folder });
  assert.ok(readFileSync(join(folder, 'dist/assets.cpp')).equals(readFileSync(join(page, 'dist/assets.cpp'))));
  rmSync(folder, { recursive: true });
});

// The keys of an object, also of those in it; of a list those of its first entry.
function shape_of(value) {
  if (Array.isArray(value)) return value.length ? [shape_of(value[0])] : [];
  if (value === null || typeof value !== 'object') return null;
  return Object.fromEntries(Object.keys(value).sort().map((key) => [key, ['asks', 'labels'].includes(key) ? null : shape_of(value[key])]));
}

test('the answers of these tests have the shape of the examples of the API', () => {
  const folder = process.env.QM_CONSOLE_EXAMPLES || fileURLToPath(new URL('../examples', import.meta.url));
  const answer = cluster_of(10);
  for (const name of ['me', 'fleet', 'node', 'waiting', 'namespaces', 'declarations', 'capacity', 'history']) {
    const path = name === 'node' ? 'nodes/gpu-3' : name;
    const example = JSON.parse(readFileSync(`${folder}/${name}.json`, 'utf8'));
    const ours = answer(path, new URLSearchParams({ chart: 'utilization', range: '30m' }));
    assert.deepEqual(shape_of(ours), shape_of(example), `${folder}/${name}.json`);
  }
});

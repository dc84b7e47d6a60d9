// Parts of the page that need no browser, and the shapes of the answers that the other tests use.
import assert from 'node:assert/strict';
import { execFileSync } from 'node:child_process';
import { cpSync, mkdtempSync, readFileSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { test } from 'node:test';
import { fileURLToPath } from 'node:url';

import { corner_of, groups_of, layout_of, place_at } from '../../../console/page/source/parts/layout.js';
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
  for (const name of ['gpu-1', 'a/b', '100%', '<b>', '节点', 'a?b']) {
    assert.deepEqual(read_route(route_of('node', name)), { view: 'node', argument: name, settings: {} });
  }
  assert.deepEqual(read_route('#/node/%'), { view: 'node', argument: '', settings: {} });
});

test('an address keeps what a view is set to, and nothing that is empty', () => {
  assert.equal(route_of('fleet', undefined, { name: '', mode: '' }), '#/fleet');
  const settings = { name: 'a&b=c', mode: 'vgpu' };
  assert.deepEqual(read_route(route_of('fleet', undefined, settings)), { view: 'fleet', argument: '', settings });
});

test('every GPU of the map has a place of its own that a pointer finds, at any size of cluster and page', () => {
  for (const count of [1, 10, 500, 5000]) {
    for (const width of [360, 800, 1500]) {
      const groups = groups_of(cluster_of(count)('fleet'));
      const grids = layout_of(groups, width, 600, 0);
      assert.equal(groups.reduce((sum, group) => sum + group.nodes.length, 0), count);
      groups.forEach((group, index) => {
        const grid = grids[index];
        assert.ok(grid.width <= width || grid.columns === 1, `${count} nodes: ${grid.width} of ${width} pixels`);
        for (const node of [0, group.nodes.length >> 1, group.nodes.length - 1]) {
          for (const card of [0, 7]) {
            const { x, y } = corner_of(grid, { node, card });
            assert.deepEqual(place_at(group, grid, x + 1, y + 1), { node, card }, `${count} nodes, ${width} pixels`);
          }
        }
        assert.equal(place_at(group, grid, grid.width + 1, 1), null);
      });
    }
  }
});

test('5,000 nodes of 8 GPUs fit into one view of 1,500 x 600 pixels', () => {
  const groups = groups_of(cluster_of(5000)('fleet'));
  const height = layout_of(groups, 1500, 600, 0).reduce((sum, grid) => sum + grid.height, 0);
  assert.ok(height <= 600, `${height} pixels`);
});

test('a node in trouble comes first in its group, then one that changes, then one that is cordoned, then by number', () => {
  const card = [0, 1, 0, 0, 0];
  const nodes = [['n-10', 0, 0, 0, [card]], ['n-9', 0, 0, 0, [card]], ['n-8', 0, 0, 2, [card]], ['n-7', 0, 0, 4, [card]], ['n-6', 0, 0, 16, [card]]];
  const [group] = groups_of({ nodes, models: ['A'], modes: ['pgpu'] });
  assert.deepEqual(group.nodes.map(([name]) => name), ['n-6', 'n-7', 'n-8', 'n-9', 'n-10']);
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
  for (const name of ['me', 'overview', 'fleet', 'node', 'pods', 'pod', 'waiting', 'reasons', 'namespaces', 'cost', 'declarations', 'capacity', 'history']) {
    const path = { node: 'nodes/gpu-3', pod: 'pods/team-a/mine-1', reasons: 'waiting/reasons' }[name] ?? name;
    const example = JSON.parse(readFileSync(`${folder}/${name}.json`, 'utf8'));
    const ours = answer(path, new URLSearchParams({ chart: 'utilization', range: '30m' }));
    assert.deepEqual(shape_of(ours), shape_of(example), `${folder}/${name}.json`);
  }
});

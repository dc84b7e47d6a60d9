// Sizes and times with 5,000 nodes of 8 cards. The figures are printed; docs/performance.md says on which machine they count.
import assert from 'node:assert/strict';

import { cluster_of } from './kit/answers.mjs';
import { close_pages, open_page, settle, show } from './kit/browser.mjs';
import { token } from './kit/server.mjs';
import { page_test, session } from './kit/session.mjs';
import { frames_of, longest_task, trace } from './kit/trace.mjs';

page_test('assets take at most 300 KB compressed', async (context) => {
  session.console.answer = cluster_of(10);
  const page = await open_page(session.browser, session.console);
  await page.goto(session.console.url);
  await page.waitForSelector('#token');
  const sizes = session.console.asset_bytes;
  const bytes = Object.values(sizes).reduce((sum, size) => sum + size, 0);
  context.diagnostic(`${bytes} bytes: ${JSON.stringify(sizes)}`);
  assert.ok(sizes['assets/app.js'] > 1000);
  assert.ok(bytes <= 300_000);
});

for (const count of [10, 500, 5000]) {
  page_test(`the first screen of ${count} nodes is there within a second`, async (context) => {
    session.console.answer = cluster_of(count);
    session.console.answer('fleet');
    const times = [];
    for (let round = 0; round < 5; round++) {
      const page = await open_page(session.browser, session.console);
      await page.setViewport({ width: 1920, height: 1080 });
      // From the start of the navigation to the frame in which all is painted: the numbers, every GPU, and the list.
      await page.evaluateOnNewDocument(() => {
        const is_there = (selector) => document.querySelector(selector) !== null;
        const observer = new MutationObserver(() => {
          if (!['.figure', '.map canvas', '.as_list .row', '.parts'].every(is_there)) return;
          observer.disconnect();
          requestAnimationFrame(() => requestAnimationFrame(() => { window.first_screen_ms = performance.now(); }));
        });
        observer.observe(document, { childList: true, subtree: true });
      });
      await page.goto(`${session.console.url}#token=${token}`);
      times.push(await page.waitForFunction(() => window.first_screen_ms).then((value) => value.jsonValue()));
      await close_pages();
    }
    context.diagnostic(`first screen after ${times.map(Math.round).join(', ')} ms`);
    // Other work on the machine only adds to a time.
    assert.ok(Math.min(...times) <= 1000, `at least ${Math.round(Math.min(...times))} ms`);
  });
}

async function open_fleet(page) {
  await page.goto(`${session.console.url}#token=${token}`);
  await page.waitForSelector('nav');
  await show(page, '/fleet');
  await page.waitForSelector('.scroll .row');
}

// Scrolls 300 frames long, 60 pixels each: 3,600 pixels a second, a fast wheel.
function scroll_for_300_frames() {
  return new Promise((done) => {
    const box = document.querySelector('.scroll');
    const middle = box.getBoundingClientRect();
    const deltas = [];
    let last = null;
    let empty = 0;
    function frame(now) {
      if (last !== null) deltas.push(now - last);
      last = now;
      // Is there a row where the reader looks?
      if (!document.elementFromPoint(middle.left + 40, middle.top + middle.height / 2)?.closest('.row')) empty += 1;
      if (deltas.length === 300) return done({ deltas, empty, top: box.scrollTop });
      box.scrollTop += 60;
      return requestAnimationFrame(frame);
    }
    requestAnimationFrame(frame);
  });
}

const sorted = (values) => [...values].sort((left, right) => left - right);
const part_of = (values, part) => sorted(values)[Math.floor(part * (values.length - 1))];
const sum_of = (values) => values.reduce((sum, value) => sum + value, 0);
function show_parts(values) {
  const [middle, most_of_them, nearly_all, all] = [0.5, 0.95, 0.99, 1].map((part) => part_of(values, part).toFixed(1));
  return `p50 ${middle}, p95 ${most_of_them}, p99 ${nearly_all}, at most ${all} ms`;
}

// {rate, in_time, ...}: `in_time` is the part of the frames that came when they were due, give or take a millisecond.
async function scroll_run(page) {
  const { result, events } = await trace(page, () => page.evaluate(scroll_for_300_frames));
  const { deltas, empty, top } = result;
  return { empty, top, rate: (1000 * deltas.length) / sum_of(deltas), in_time: deltas.filter((delta) => delta < 17.7).length / deltas.length,
    ...frames_of(events) };
}

// As tall as 5,000 rows, with nothing to draw: what scrolls best in this browser on this machine.
const empty_page = `<div class="scroll" style="height: 480px; overflow-y: scroll; background: white">
  <div class="row" style="height: 230000px"></div></div>`;

const longest_frame_ms = 8; // half of a frame: the other half is the browser's

page_test('5,000 nodes scroll at 60 frames a second', async (context) => {
  session.console.answer = cluster_of(5000);
  const ceiling = await open_page(session.browser, session.console);
  await ceiling.setContent(empty_page);
  const page = await open_page(session.browser, session.console);
  await open_fleet(page);
  await page.evaluate(scroll_for_300_frames); // its code is compiled now, as after a second of use
  // Other work on the machine only adds to a time: the best of some rounds counts. An empty page and ours take turns.
  const rounds = [];
  const best = () => Math.min(...rounds.map(({ ours }) => part_of(ours.frames, 0.99)));
  const ratio = () => Math.max(...rounds.map(({ empty, ours }) => ours.rate / empty.rate));
  // On a slow machine a frame takes longer and may still come when it is due; on one with other work it comes late whatever the page does.
  const smooth = () => ratio() >= 0.98 || (!process.env.QM_NIGHTLY && best() <= longest_frame_ms);
  for (let round = 0; round < 10 && (round < 2 || !smooth()); round++) {
    await ceiling.bringToFront();
    const empty = await scroll_run(ceiling);
    await page.bringToFront();
    await page.evaluate(() => { document.querySelector('.scroll').scrollTop = 0; });
    const ours = await scroll_run(page);
    rounds.push({ empty, ours });
    const show = (run) => `${run.rate.toFixed(1)} frames a second, ${(100 * run.in_time).toFixed(0)} % in time, ` +
      `CPU of the page's thread in a frame ${show_parts(run.frames)}`;
    context.diagnostic(`nothing to draw: ${show(empty)}`);
    context.diagnostic(`5,000 nodes: ${show(ours)}`);
    const per_frame = Object.entries({ ...ours.kinds, 'the browser’s other threads': ours.others })
      .map(([kind, time]) => `${kind} ${(time / ours.frames.length).toFixed(2)}`);
    context.diagnostic(`CPU per frame, mean, in ms: ${per_frame.join(', ')}`);
    assert.ok(ours.top > 10000, `it scrolled ${ours.top} pixels only`);
    assert.equal(ours.empty, 0, 'frames in which no row is where the reader looks');
    assert.ok(ours.frames.length >= 290 && part_of(ours.frames, 0.5) > 0, `the trace has ${ours.frames.length} frames`);
  }
  assert.ok(smooth(), `the page's thread works ${best().toFixed(1)} ms in a frame, and it reaches ${ratio().toFixed(2)} of ` +
    `the frames of an empty page`);
});

// Moves a pointer over the map and scrolls the page, one step a frame, 300 frames long: what people do on the first screen.
function use_map_for_300_frames() {
  return new Promise((done) => {
    const box = document.querySelector('main') ?? document.querySelector('.scroll');
    const canvases = [...document.querySelectorAll('.map canvas')];
    const deltas = [];
    const said = new Set();
    let last = null;
    function frame(now) {
      if (last !== null) deltas.push(now - last);
      last = now;
      if (deltas.length === 300) return done({ deltas, top: box.scrollTop, said: said.size });
      const canvas = canvases[deltas.length % Math.max(1, canvases.length)];
      const at = canvas?.getBoundingClientRect();
      canvas?.dispatchEvent(new PointerEvent('pointermove', { bubbles: true, clientX: at.left + (deltas.length * 13) % at.width, clientY: at.top + (deltas.length * 7) % at.height }));
      said.add(document.querySelector('.tip')?.textContent);
      box.scrollTop = Math.abs(((deltas.length * 12) % 1200) - 600);
      return requestAnimationFrame(frame);
    }
    requestAnimationFrame(frame);
  });
}

for (const count of [10, 500, 5000]) {
  page_test(`the first screen of ${count} nodes is used at 60 frames a second`, async (context) => {
    session.console.answer = cluster_of(count);
    const ceiling = await open_page(session.browser, session.console);
    await ceiling.setContent(empty_page);
    const page = await open_page(session.browser, session.console);
    await page.setViewport({ width: 1920, height: 1080 });
    await page.goto(`${session.console.url}#token=${token}`);
    await page.waitForSelector('.map canvas');
    await page.evaluate(use_map_for_300_frames);
    const run = async (target) => {
      const { result, events } = await trace(target, () => target.evaluate(use_map_for_300_frames));
      return { ...result, rate: (1000 * result.deltas.length) / sum_of(result.deltas), ...frames_of(events) };
    };
    const rounds = [];
    const best = () => Math.min(...rounds.map(({ ours }) => part_of(ours.frames, 0.99)));
    const ratio = () => Math.max(...rounds.map(({ empty, ours }) => ours.rate / empty.rate));
    const smooth = () => ratio() >= 0.98 || (!process.env.QM_NIGHTLY && best() <= longest_frame_ms);
    for (let round = 0; round < 10 && (round < 2 || !smooth()); round++) {
      await ceiling.bringToFront();
      const empty = await run(ceiling);
      await page.bringToFront();
      const ours = await run(page);
      rounds.push({ empty, ours });
      context.diagnostic(`${count} nodes: ${ours.rate.toFixed(1)} frames a second (${empty.rate.toFixed(1)} with nothing to draw), ` +
        `CPU of the page's thread in a frame ${show_parts(ours.frames)}`);
      assert.ok(ours.said > 20, `the tooltip said ${ours.said} things only`);
    }
    assert.ok(smooth(), `the page's thread works ${best().toFixed(1)} ms in a frame, and it reaches ${ratio().toFixed(2)} of the frames of an empty page`);
  });
}

page_test('the rows are a layer that the browser moves without the page’s thread', async () => {
  session.console.answer = cluster_of(5000);
  const page = await open_page(session.browser, session.console);
  await open_fleet(page);
  const devtools = await page.createCDPSession();
  const heights = new Set();
  devtools.on('LayerTree.layerTreeDidChange', ({ layers }) => layers?.forEach(({ height }) => heights.add(height)));
  await devtools.send('DOM.enable');
  await devtools.send('LayerTree.enable');
  const end = Date.now() + 20000;
  while (!heights.has(5000 * 46) && Date.now() < end) {
    await page.evaluate(() => { document.querySelector('.scroll').scrollTop += 600; });
    await settle(page);
  }
  assert.ok(heights.has(5000 * 46), `no layer is as tall as 5,000 rows: ${[...heights].join(', ')}`);
});

page_test('a change of one node among 5,000 draws that node only', async (context) => {
  const cluster = cluster_of(5000);
  let fleet = cluster('fleet');
  session.console.answer = (path, query) => (path === 'fleet' ? fleet : cluster(path, query));
  const page = await open_page(session.browser, session.console);
  await open_fleet(page);
  await page.waitForFunction(() => document.body.innerText.includes('● Live'));
  await page.evaluate(() => {
    window.changed_rows = new Set();
    new MutationObserver((changes) => {
      for (const { target } of changes) window.changed_rows.add((target.closest?.('.row') ?? target.parentElement.closest('.row'))?.dataset.index);
    }).observe(document.querySelector('.scroll'), { subtree: true, childList: true, characterData: true, attributes: true });
  });
  const { events } = await trace(page, async () => {
    fleet = structuredClone(fleet);
    const card = fleet.nodes[3][4][0];
    [card[3], card[4], card[5]] = [55, 100, [[55, 100, 0]]];
    session.console.change(['fleet']);
    await page.waitForFunction(() => document.querySelector('[data-index="3"] .card').textContent === '55');
    await page.waitForFunction(() => new Promise((done) => { requestAnimationFrame(() => done(true)); }));
  });
  assert.deepEqual(await page.evaluate(() => [...window.changed_rows]), ['3']);
  context.diagnostic(`the longest task of the page's thread: ${longest_task(events).toFixed(0)} ms of CPU`);
  // Much more would stop a scroll that is going on.
  assert.ok(longest_task(events) <= 100);
});

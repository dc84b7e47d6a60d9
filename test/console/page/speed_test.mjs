// Sizes and times with 5,000 nodes of 8 cards. The figures are printed; docs/performance.md says on which machine they count.
import assert from 'node:assert/strict';
import { test } from 'node:test';

import { cluster_of } from './kit/answers.mjs';
import { open_page } from './kit/browser.mjs';
import { token } from './kit/server.mjs';
import { session } from './kit/session.mjs';

const median = (values) => [...values].sort((left, right) => left - right)[Math.floor(values.length / 2)];

test('assets take at most 300 KB compressed', async (context) => {
  session.console.answer = cluster_of(10);
  const page = await open_page(session.browser, session.console);
  await page.goto(session.console.url);
  await page.waitForSelector('#token');
  const sizes = session.console.asset_bytes;
  const bytes = Object.values(sizes).reduce((sum, size) => sum + size, 0);
  context.diagnostic(`${bytes} bytes: ${JSON.stringify(sizes)}`);
  assert.ok(sizes['assets/app.js'] > 1000);
  assert.ok(bytes <= 300_000);
  await page.close_all();
});

test('the first view of 5,000 nodes is there within a second', async (context) => {
  session.console.answer = cluster_of(5000);
  session.console.answer('fleet');
  const times = [];
  for (let round = 0; round < 3; round++) {
    const page = await open_page(session.browser, session.console);
    // From the start of the navigation to the frame in which the first row is painted.
    await page.evaluateOnNewDocument(() => {
      const observer = new MutationObserver(() => {
        if (!document.querySelector('.scroll .row')) return;
        observer.disconnect();
        requestAnimationFrame(() => requestAnimationFrame(() => { window.first_rows_ms = performance.now(); }));
      });
      observer.observe(document, { childList: true, subtree: true });
    });
    await page.goto(`${session.console.url}#token=${token}`);
    times.push(await page.waitForFunction(() => window.first_rows_ms).then((value) => value.jsonValue()));
    await page.close_all();
  }
  context.diagnostic(`first rows after ${times.map(Math.round).join(', ')} ms`);
  assert.ok(median(times) <= 1000, `median of ${times.map(Math.round).join(', ')} ms`);
});

test('5,000 nodes scroll at 60 frames a second', async (context) => {
  session.console.answer = cluster_of(5000);
  const page = await open_page(session.browser, session.console);
  await page.goto(`${session.console.url}#token=${token}`);
  await page.waitForSelector('.scroll .row');
  const measured = await page.evaluate(() => new Promise((done) => {
    const box = document.querySelector('.scroll');
    const long_tasks = [];
    const empty = [];
    new PerformanceObserver((list) => long_tasks.push(...list.getEntries().map((entry) => Math.round(entry.duration)))).observe({ type: 'longtask' });
    const deltas = [];
    let last = null;
    function frame(now) {
      if (last !== null) deltas.push(now - last);
      last = now;
      // Is there a row where the reader looks?
      const middle = box.getBoundingClientRect();
      if (!document.elementFromPoint(middle.left + 40, middle.top + middle.height / 2)?.closest('.row')) empty.push(deltas.length);
      if (deltas.length >= 300) return done({ deltas, long_tasks, empty: empty.length, top: box.scrollTop });
      box.scrollTop += 60; // 3,600 pixels a second: a fast wheel
      requestAnimationFrame(frame);
    }
    requestAnimationFrame(frame);
  }));
  const { deltas, long_tasks, empty, top } = measured;
  const sorted = [...deltas].sort((left, right) => left - right);
  const at = (part) => sorted[Math.floor(part * (sorted.length - 1))].toFixed(1);
  const seconds = deltas.reduce((sum, delta) => sum + delta, 0) / 1000;
  const rate = deltas.length / seconds;
  const late = deltas.filter((delta) => delta > 25).length;
  context.diagnostic(`${rate.toFixed(1)} frames a second over ${seconds.toFixed(1)} s; a frame takes p50 ${at(0.5)}, p95 ${at(0.95)}, p99 ${at(0.99)}, at most ${at(1)} ms; ` +
    `${late} of ${deltas.length} came late; long tasks: ${long_tasks.length ? long_tasks.join(', ') + ' ms' : 'none'}; frames without rows: ${empty}`);
  assert.ok(top > 10000, `it scrolled ${top} pixels only`);
  assert.equal(empty, 0, 'frames in which no row is where the reader looks');
  assert.ok(rate >= 57, `${rate.toFixed(1)} frames a second`);
  await page.close_all();
});

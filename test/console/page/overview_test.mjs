// The first screen: its numbers are the console's, trouble has a remedy and a command to copy, the map leads to nodes by
// pointer and the list by keyboard, and it can be read from 390 to 1,920 pixels in both languages and themes.
import assert from 'node:assert/strict';

import { cluster_of, me } from './kit/answers.mjs';
import { open_page, settle, show, sign_in, violations_of } from './kit/browser.mjs';
import { page_test, session } from './kit/session.mjs';
import { heading_of, text_of } from './kit/views.mjs';

const figures_of = (page) => page.$$eval('.figure', (all) => Object.fromEntries(all.map((figure) => [
  figure.querySelector('.figure_name').textContent, figure.querySelector('.figure_value').textContent])));

page_test('every number of the first screen is the console’s', async () => {
  for (const count of [10, 500, 5000]) {
    session.console.answer = cluster_of(count);
    const { gpus, waiting, cost } = session.console.answer('overview');
    const page = await open_page(session.browser, session.console);
    await sign_in(page, session.console, '/overview');
    const number = (value) => new Intl.NumberFormat('en', { maximumFractionDigits: 2 }).format(value);
    assert.deepEqual(await figures_of(page), {
      GPUs: number(gpus.total), Allocated: number(gpus.allocatedCores / 100), Free: number(gpus.free), 'Without a mode': number(gpus.withoutMode),
      Cordoned: number(gpus.cordoned), Unhealthy: number(gpus.unhealthy), 'Waiting pods': number(waiting.pods), 'Cost this month': cost.amount.split(' ')[0],
    });
    // The map counts by itself what it draws: the same GPUs.
    const label = await page.$eval('.map', (map) => map.getAttribute('aria-label'));
    assert.ok(label.startsWith(`A map of ${number(gpus.total)} GPUs, ${number(gpus.allocatedCores / 100)} allocated, ${number(gpus.unhealthy)} unhealthy`), label);
    assert.equal(await page.$eval('.as_list [role=grid]', (grid) => Number(grid.getAttribute('aria-rowcount')) - 1), count);
  }
});

page_test('all is well where nothing is wrong, and what is wrong has its remedy and a command that is copied', async () => {
  const cluster = cluster_of(10);
  const page = await open_page(session.browser, session.console);
  await page.browserContext().overridePermissions(new URL(session.console.url).origin, ['clipboard-read', 'clipboard-write']);
  session.console.answer = cluster;
  await sign_in(page, session.console, '/overview');
  assert.equal(await page.$eval('.verdict', (verdict) => verdict.textContent), 'Problems: 3');
  const needs = await page.$$eval('.needs .finding', (all) => all.map((finding) => finding.innerText));
  assert.equal(needs.length, 4);
  assert.match(needs[0], /no one enforces AcceleratorQuota team-b\/limits/);
  assert.match(needs.at(-1), /let them end or delete them/);
  const [button] = await page.$$('.needs .command button');
  await button.click();
  await page.waitForFunction(() => document.querySelector('.needs .command button').textContent === 'Copied');
  assert.equal(await page.evaluate(() => navigator.clipboard.readText()), 'kubectl describe acceleratorquota limits -n team-b');

  const well = structuredClone(cluster('overview'));
  well.health = { problems: 0, parts: well.health.parts.map((part) => ({ ...part, outcome: 'good', findings: [] })) };
  session.console.answer = (path, query) => (path === 'overview' ? well : cluster(path, query));
  session.console.change(['overview']);
  await page.waitForFunction(() => document.querySelector('.verdict').textContent === 'All is well');
  assert.equal(await page.$('.needs'), null);
  // What is shown is from an hour ago: that is no longer well.
  session.console.say('silent', { seconds: 3600 });
  await page.waitForFunction(() => document.querySelector('.verdict').textContent === 'Problems: 1');
  session.console.say('heard', {});
  await page.waitForFunction(() => document.querySelector('.verdict').textContent === 'All is well');
});

page_test('pods that wait are grouped by their reason, with the smallest change and its command', async () => {
  session.console.answer = cluster_of(500);
  const { groups } = session.console.answer('waiting/reasons');
  const page = await open_page(session.browser, session.console);
  await sign_in(page, session.console, '/overview');
  const shown = await page.$$eval('.reasons .finding', (all) => all.map((finding) => [finding.innerText, finding.querySelector('.command code').textContent]));
  assert.equal(shown.length, groups.length);
  groups.forEach((group, index) => {
    assert.ok(shown[index][0].includes(`Pods: ${group.pods}`), shown[index][0]);
    assert.ok(shown[index][0].includes(group.reason.en));
    if (group.change) assert.ok(shown[index][0].includes(`Smallest change: ${group.change.en}`));
    assert.equal(shown[index][1], group.command);
  });
});

page_test('a GPU under the pointer says who has it, and a click leads to its node', async () => {
  for (const count of [10, 5000]) {
    session.console.answer = cluster_of(count);
    const page = await open_page(session.browser, session.console);
    await sign_in(page, session.console, '/overview');
    const canvas = await page.$('.map canvas');
    const { x, y } = await canvas.boundingBox();
    await page.mouse.move(x + 1.5, y + 1.5);
    await page.waitForFunction(() => !document.querySelector('.tip').hidden);
    const said = await page.$eval('.tip', (tip) => tip.textContent);
    const node = said.match(/^(gpu-\d+) · GPU 0/)[1];
    assert.match(said, /Allocated: /);
    assert.match(said, /Measured use: /);
    await page.mouse.click(x + 1.5, y + 1.5);
    await settle(page);
    assert.equal(await heading_of(page), `Node ${node}`);
    assert.deepEqual(page.problems, []);
  }
});

page_test('the map is painted: a GPU that is in use has other pixels than a free one', async () => {
  const cluster = cluster_of(10);
  session.console.answer = cluster;
  const page = await open_page(session.browser, session.console);
  await sign_in(page, session.console, '/overview');
  const colors = await page.$$eval('.map canvas', (all) => all.map((canvas) => {
    const { data } = canvas.getContext('2d').getImageData(0, 0, canvas.width, canvas.height);
    const seen = new Set();
    for (let index = 0; index < data.length; index += 4) seen.add(`${data[index]} ${data[index + 1]} ${data[index + 2]} ${data[index + 3]}`);
    return seen.size;
  }));
  assert.ok(colors.length > 0 && colors.every((count) => count >= 3), String(colors));
});

page_test('the list below the map by keyboard: arrows move, Enter opens the node', async () => {
  session.console.answer = cluster_of(500);
  const page = await open_page(session.browser, session.console);
  await sign_in(page, session.console, '/overview');
  const troubles = await page.$$eval('.as_list .scroll .state', (all) => all.slice(0, 5).map((state) => state.classList.contains('bad')));
  assert.deepEqual(troubles, [true, true, true, true, true], 'nodes in trouble come first');
  await page.focus('.as_list [role=row][tabindex="0"]');
  await page.keyboard.press('ArrowDown');
  await settle(page);
  const name = await page.evaluate(() => document.activeElement.querySelector('a').textContent);
  await page.keyboard.press('Enter');
  await settle(page);
  assert.equal(await heading_of(page), `Node ${name}`);
});

page_test('"/" searches from anywhere: nodes, namespaces and views', async () => {
  session.console.answer = cluster_of(500);
  const page = await open_page(session.browser, session.console);
  await sign_in(page, session.console, '/capacity');
  const search = async (words, ...keys) => {
    await page.keyboard.press('/');
    await page.waitForFunction(() => document.activeElement.matches('.search input'));
    await page.keyboard.type(words);
    await page.waitForFunction(() => !document.querySelector('#search_matches').hidden);
    for (const key of [...keys, 'Enter']) await page.keyboard.press(key);
    await settle(page);
  };
  await search('gpu-00123');
  assert.equal(await heading_of(page), 'Node gpu-00123');
  await search('gpu-0001', 'ArrowDown');
  assert.equal(await heading_of(page), 'Node gpu-00011');
  await search('research');
  assert.equal(await page.evaluate(() => location.hash), '#/waiting/research');
  await search('histo');
  assert.equal(await heading_of(page), 'History');
  assert.deepEqual(page.problems, []);
});

page_test('an address keeps what a view is set to over a reload', async () => {
  session.console.answer = cluster_of(500);
  const page = await open_page(session.browser, session.console);
  await sign_in(page, session.console);
  await page.type('main input[type=search]', '0010');
  await page.select('main select', 'vgpu');
  await settle(page);
  const rows = () => page.$eval('[role=grid]', (grid) => Number(grid.getAttribute('aria-rowcount')) - 1);
  const before = await rows();
  assert.match(await page.evaluate(() => location.hash), /name=0010&mode=vgpu/);
  await page.reload();
  await page.waitForSelector('[role=grid]');
  assert.equal(await rows(), before);
  assert.equal(await page.$eval('main input[type=search]', (input) => input.value), '0010');
});

page_test('what a person may not see is not there: no empty tiles, no map, no sentence about rights', async () => {
  const cluster = cluster_of(10);
  const own = { ...cluster('overview'), health: null, gpus: null };
  const narrow = { ...me, allNamespaces: false, namespaces: ['team-a'],
    views: { ...me.views, fleet: false, node: false, capacity: false, declarations: false, history: false } };
  session.console.answer = (path, query) => ({ me: narrow, overview: own })[path] ?? cluster(path, query);
  session.console.requests.length = 0;
  const page = await open_page(session.browser, session.console);
  await sign_in(page, session.console, '/overview');
  assert.deepEqual(Object.keys(await figures_of(page)), ['Waiting pods', 'Cost this month']);
  assert.equal(await page.$('.map, .health, .as_list'), null);
  assert.ok(!(await text_of(page)).includes('may not'));
  const asked = new Set(session.console.requests.map(({ path }) => path));
  for (const path of ['api/v1/fleet', 'api/v1/measured']) assert.ok(!asked.has(path), path);
  assert.deepEqual(page.problems, []);
});

for (const [width, height] of [[390, 844], [768, 1024], [1366, 768], [1920, 1080]]) {
  const form = width === 768 || width === 1366 ? page_test.long : page_test;
  form(`the first screen at ${width} pixels, in both languages and themes`, async () => {
    session.console.answer = cluster_of(500);
    for (const [language, theme] of [['en', 'light'], ['zh-CN', 'dark']]) {
      const page = await open_page(session.browser, session.console, { theme, language });
      await page.setViewport({ width, height });
      await sign_in(page, session.console, '/overview');
      const { wide, cut } = await page.evaluate(() => ({
        wide: Math.max(document.documentElement.scrollWidth, document.querySelector('main').scrollWidth) - innerWidth,
        cut: [...document.querySelectorAll('main canvas, main button, main .figure')].filter((element) => element.getBoundingClientRect().right > innerWidth + 1)
          .map((element) => element.outerHTML.slice(0, 120)),
      }));
      assert.ok(wide <= 0, `${language}: ${wide} pixels beyond the right edge`);
      assert.deepEqual(cut, [], language);
      assert.deepEqual(await violations_of(page), [], `${language}, ${theme}`);
      assert.deepEqual(page.problems, []);
    }
  });
}

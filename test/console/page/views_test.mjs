// Every view, at 10, 500 and 5,000 nodes: it shows its answer, says nothing on the console, asks nobody else, and axe-core finds nothing serious.
import assert from 'node:assert/strict';
import { readFileSync } from 'node:fs';
import { fileURLToPath } from 'node:url';

import { cluster_of } from './kit/answers.mjs';
import { open_page, settle, show, sign_in, violations_of } from './kit/browser.mjs';
import { page_test, session } from './kit/session.mjs';
import { heading_of, text_of, views } from './kit/views.mjs';

// What each view has to show of the answers for `count` nodes.
const expected = {
  overview: (count) => ['Problems: 3', 'quartermaster-6d5f9 leads', new Intl.NumberFormat('en').format(8 * count), '12345.67', 'EUR · all namespaces', 'oldest: ',
    'kubectl annotate node gpu-00002 quartermaster.io/cordon-', 'cohort research of namespace team-a', 'A100-SXM4-80GB', 'Shares (vgpu)'],
  fleet: (count) => [`Nodes: ${new Intl.NumberFormat('en').format(count)}`, 'gpu-00001', 'Whole GPUs (pgpu)'],
  node: () => ['Ready · Unhealthy: GPU 5 · Changes its mode', 'GPU-00000000-0000-0000-0000-000000000007', 'team-a/infer-0', 'In use', 'NV12', 'XID 79',
    'Mode changes from Shares (vgpu) to Whole GPUs (pgpu)', 'Pods that you may not see: 2', 'nvidia-uvm'],
  pods: () => ['team-a/infer-0', 'GPU 0 (the whole GPU)', 'CrashLoopBackOff', '1.53', 'not known'],
  pod: () => ['ended with exit code 137 OOMKilled', 'BackOff · Back-off restarting failed container · 4 times', 'mps', 'Measured memory of the pod’s shares', 'Maximum'],
  waiting: () => ['team-a/train-0', 'quartermaster explain pod train-0 -n team-a', 'container main: nvidia.com/gpu from 4 to 1', 'gpu-00002: 1 card less in use', 'not enough whole cards'],
  namespaces: () => ['not yours to see', 'research', '1.6 of 1.5 · 0.1 borrowed', '4 GiB lent', 'No prices are set'],
  cost: () => ['Cost of the namespaces below: 4711.50 EUR', '12.5 EUR', 'no price', 'without a price: Tesla-T4', '2,100.25 used · 1,000 idle', '1200.00 EUR',
    'report chargeback --month 2026-11'],
  declarations: () => ['cf-crl-broken', 'optionl', 'team-a/infer-0', 'vcuda-memory is required', 'warned about'],
  capacity: () => ['⚠ 9.5', '120', '1 unhealthy · 1 cordoned', 'no growth seen', 'NVIDIA-A100-SXM4-80GB', 'Stranded'],
  history: () => ['Measured utilization of GPUs, per node', 'A · gpu-00001', 'Maximum'],
};

for (const count of [10, 500, 5000]) {
  const form = count === 500 ? page_test.long : page_test;
  form(`every view at ${count} nodes`, async (context) => {
    session.console.answer = cluster_of(count);
    for (const theme of count === 10 ? ['light', 'dark'] : ['light']) {
      const page = await open_page(session.browser, session.console, { theme });
      await sign_in(page, session.console);
      for (const [view, [route, heading]] of Object.entries(views)) {
        await context.test(`${view}, ${theme}`, async () => {
          await show(page, route);
          assert.equal(await heading_of(page), heading);
          const shown = await text_of(page);
          for (const text of expected[view](count)) assert.ok(shown.includes(text), `“${text}” is not on the page: ${shown.slice(0, 600)}`);
          assert.deepEqual(await violations_of(page), []);
          assert.deepEqual(page.problems, []);
          assert.deepEqual(page.elsewhere, []);
        });
      }
    }
  });
}

page_test('every view in Chinese', async () => {
  session.console.answer = cluster_of(10);
  const page = await open_page(session.browser, session.console, { language: 'zh-CN' });
  await sign_in(page, session.console);
  for (const [route, , heading] of Object.values(views)) {
    await show(page, route);
    assert.equal(await heading_of(page), heading);
    assert.deepEqual(await violations_of(page), []);
  }
  assert.equal(await page.$eval('html', (html) => html.lang), 'zh');
  assert.deepEqual(page.problems, []);
});

page_test('the examples of the API are shown', async () => {
  const folder = process.env.QM_CONSOLE_EXAMPLES || fileURLToPath(new URL('../examples', import.meta.url));
  const example = (name) => JSON.parse(readFileSync(`${folder}/${name}.json`, 'utf8'));
  session.console.answer = (path) => example(path.startsWith('nodes/') ? 'node' : path.startsWith('pods/') ? 'pod' : path.split('/').at(-1));
  const page = await open_page(session.browser, session.console);
  await sign_in(page, session.console);
  const shown = {
    overview: 'kubectl uncordon gpu-3',
    fleet: 'gpu-3',
    'node/gpu-3': 'Mode changes',
    pods: 'team-a/mine-1',
    'pod/team-a%2Fmine-1': 'OOMKilled',
    waiting: '<b>bold</b>',
    namespaces: 'research',
    cost: '12.50 EUR',
    declarations: 'cf-crl-gpu',
    capacity: '--prometheus-url',
    history: 'gpu-2',
  };
  for (const [route, text] of Object.entries(shown)) {
    await show(page, `/${route}`);
    assert.ok((await text_of(page)).includes(text), `${route} does not show “${text}”: ${await text_of(page)}`);
  }
  assert.deepEqual(page.problems, []);
});

page_test('the fleet is filtered by name, mode and need of attention, and coloured by use, health and mode', async () => {
  session.console.answer = cluster_of(500);
  const fleet = session.console.answer('fleet');
  const page = await open_page(session.browser, session.console);
  await sign_in(page, session.console);
  const rows = () => page.$eval('[role=grid]', (grid) => Number(grid.getAttribute('aria-rowcount')) - 1);
  assert.equal(await rows(), 500);
  await page.type('main input[type=search]', 'GPU-0010');
  assert.equal(await rows(), 10);
  await page.$eval('main input[type=search]', (input) => { input.value = ''; input.dispatchEvent(new Event('input', { bubbles: true })); });
  await page.select('main select', 'hami');
  await settle(page);
  assert.equal(await rows(), fleet.nodes.filter(([, mode]) => fleet.modes[mode] === 'hami').length);
  await page.select('main select', '');
  await page.click('main input[type=checkbox]');
  await settle(page);
  assert.equal(await rows(), fleet.nodes.filter(([, , , flags]) => flags & (1 | 4 | 8 | 16 | 32 | 64)).length);

  const captions = () => page.$$eval('.row .cards .card', (all) => all.map((card) => card.textContent));
  await page.click('input[value=health]');
  await settle(page);
  assert.ok((await captions()).includes('✕'));
  await page.click('input[value=mode]');
  await settle(page);
  assert.ok((await captions()).every((caption) => 'PVHT'.includes(caption)));
});

page_test('the worst of a node comes first, and a change that is stuck does not look like one that goes on', async () => {
  const cluster = cluster_of(10);
  const fleet = structuredClone(cluster('fleet'));
  const stuck = fleet.phases.indexOf('Stuck');
  [fleet.nodes[2][2], fleet.nodes[2][3]] = [stuck, 4];
  [fleet.nodes[3][2], fleet.nodes[3][3]] = [stuck, 1 | 2 | 4 | 8 | 16];
  fleet.nodes[4][3] = 32 | 64;
  session.console.answer = (path, query) => (path === 'fleet' ? fleet : cluster(path, query));
  const page = await open_page(session.browser, session.console);
  await sign_in(page, session.console);
  const states = await page.$$eval('.scroll .state', (all) => all.map((state) => state.textContent));
  assert.equal(states[1], 'Unhealthy GPU, Changes its mode');
  assert.equal(states[2], 'Change of mode is stuck');
  assert.equal(states[3], 'Not ready, Unhealthy GPU, Old report, Change of mode is stuck, Cordoned');
  assert.equal(states[4], 'More allocated than there is, Mode refused');
  const is_cut = await page.$$eval('.scroll .state', (all) => all.slice(0, 3).some((state) => state.scrollWidth > state.clientWidth + 1));
  assert.equal(is_cut, false, 'a state is cut off');
});

page_test('a guess is said to be one, and a module that no node is in is named', async () => {
  session.console.answer = cluster_of(500);
  const page = await open_page(session.browser, session.console);
  await sign_in(page, session.console, '/node/gpu-00002');
  assert.equal((await text_of(page)).split('(which GPU is a guess)').length, 2);
  await show(page, '/waiting');
  const sentences = await page.$$eval('article', (all) => all.map((pod) => [pod.innerText.includes('Module pgpu'), pod.innerText.includes('No small change')]));
  assert.deepEqual(sentences.slice(0, 4), [[false, false], [false, true], [false, false], [true, false]]);
});

page_test('the number of waiting pods of a namespace leads to them', async () => {
  session.console.answer = cluster_of(500);
  const page = await open_page(session.browser, session.console);
  await sign_in(page, session.console, '/namespaces');
  await page.click('td a[href="#/waiting/team-b"]');
  await settle(page);
  assert.equal(await heading_of(page), 'Waiting pods');
  assert.equal(await page.$eval('main select', (select) => select.value), 'team-b');
  assert.equal(session.console.requests.filter(({ path }) => path === 'api/v1/waiting').at(-1).query.get('namespace'), 'team-b');
});

page_test('a namespace’s waiting pods, and the next page of them', async () => {
  session.console.answer = cluster_of(500);
  const page = await open_page(session.browser, session.console);
  await sign_in(page, session.console, '/waiting');
  assert.match(await text_of(page), /wait for GPUs: 125/);
  const [, next] = await page.$$('.pages button');
  await next.click();
  await settle(page);
  await page.waitForFunction(() => document.querySelector('main').innerText.includes('51 to 100 of 125'));
  await page.select('main select', 'research');
  await page.waitForFunction(() => document.querySelector('main').innerText.includes('wait for GPUs: 63'));
  assert.match(await text_of(page), /1 to 50 of 63/);
});

page_test('history: every range is asked for, a custom one by its times, and a wrong one is refused on the page', async () => {
  session.console.answer = cluster_of(10);
  const page = await open_page(session.browser, session.console);
  await sign_in(page, session.console, '/history');
  const asked = () => session.console.requests.filter(({ path }) => path === 'api/v1/history').at(-1).query;
  for (const range of ['30m', '1h', '6h', '12h', '24h', '2d', '7d']) {
    await page.click(`input[value="${range}"]`);
    await settle(page);
    assert.equal(asked().get('range'), range);
    assert.ok(await page.$('.chart canvas'));
  }
  await page.click('input[value=custom]');
  const set = (index, value) => page.evaluate((position, time) => {
    const input = document.querySelectorAll('input[type=datetime-local]')[position];
    input.value = time;
    input.dispatchEvent(new Event('change', { bubbles: true }));
  }, index, value);
  await set(0, '2026-11-01T00:00');
  await set(1, '2026-11-02T12:00');
  await settle(page);
  assert.equal(asked().get('to') - asked().get('from'), 36 * 3600);
  await set(1, '2026-10-01T00:00');
  await settle(page);
  assert.match(await text_of(page), /The range ends before it starts/);
  await set(1, '2026-12-30T00:00');
  await settle(page);
  assert.match(await text_of(page), /longer than 31 days/);

  session.console.answer = (path, query) => (path === 'history'
    ? { available: false, message: 'No Prometheus is set. Start the console with --prometheus-url.', series: [], times: [] } : cluster_of(10)(path, query));
  await page.click('input[value="2d"]');
  await settle(page);
  assert.match(await text_of(page), /There is no history: No Prometheus is set/);
  assert.deepEqual(page.problems, []);
});

page_test('history without series is asked for again by itself, until there are some', async () => {
  const cluster = cluster_of(10);
  let is_scraped = false;
  session.console.answer = (path, query) => (path === 'history' && !is_scraped ? { ...cluster(path, query), series: [], times: [] } : cluster(path, query));
  const page = await open_page(session.browser, session.console);
  await sign_in(page, session.console, '/history');
  assert.equal(await page.$('.chart canvas'), null);
  is_scraped = true;
  await page.waitForSelector('.chart canvas', { timeout: 20000 }); // with series it is asked for once a minute
  assert.deepEqual(page.problems, []);
});

page_test('theme and language follow the browser, and a choice lasts', async () => {
  session.console.answer = cluster_of(10);
  const page = await open_page(session.browser, session.console, { theme: 'dark' });
  await sign_in(page, session.console);
  const paper = () => page.$eval('body', (body) => getComputedStyle(body).backgroundColor);
  assert.equal(await paper(), 'rgb(18, 23, 29)');
  await page.select('#theme', 'light');
  assert.equal(await paper(), 'rgb(255, 255, 255)');
  await page.select('#language', 'zh');
  assert.equal(await heading_of(page), '集群');
  await sign_in(page, session.console);
  await page.reload();
  await page.waitForSelector('nav');
  assert.equal(await paper(), 'rgb(255, 255, 255)');
  assert.equal(await heading_of(page), '集群');
});

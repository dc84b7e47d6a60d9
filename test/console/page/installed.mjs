// A console that someone installed with the chart, in a real browser: the operator's own server, real tokens, a real Prometheus behind it.
// test/image installs it, and names by the environment what is there.
import assert from 'node:assert/strict';
import { execFileSync } from 'node:child_process';
import { after, before } from 'node:test';

import { open_page, page_test, settle, show, start_browser, violations_of } from './kit/browser.mjs';
import { heading_of, text_of, views_of, wait_for_text } from './kit/views.mjs';

const { QM_CONSOLE_URL: url, QM_CONSOLE_TOKEN: token, QM_CONSOLE_NODE: node, QM_CONSOLE_CARD: card } = process.env;
const views = views_of(node, 'team-a/holder');
const everyone = { url, token }; // who may see the whole cluster

let browser;
before(async () => { browser = await start_browser('--host-resolver-rules=MAP *.test 127.0.0.1', '--ignore-certificate-errors'); });
after(() => browser?.close());

/// As a person does: the token goes into the form.
async function sign_in(console_) {
  const page = await open_page(browser, console_);
  await page.goto(console_.url);
  await page.waitForSelector('#token');
  await page.$eval('#token', (field, value) => { field.value = value; field.dispatchEvent(new Event('input', { bubbles: true })); }, console_.token);
  await page.focus('#token');
  await page.keyboard.press('Enter');
  await page.waitForSelector('nav');
  return page;
}

function assert_quiet(page) {
  assert.deepEqual(page.problems, []);
  assert.deepEqual(page.elsewhere, []);
}

/// Waits until the chart has a line with a number in the table below it, for each of these names.
async function wait_for_series(page, names, timeout) {
  await page.waitForFunction((wanted) => {
    const rows = [...document.querySelectorAll('main table tbody tr')].map((row) => row.innerText);
    return document.querySelector('.chart canvas') && wanted.every((name) => rows.some((row) => row.includes(name) && /\d/.test(row.split(name)[1])));
  }, { timeout, polling: 250 }, names);
}

page_test('first look: history shows a chart with data', async () => {
  const page = await sign_in(everyone);
  await show(page, '/history');
  await wait_for_series(page, [node], 180000);
  console.log(`a chart with data at ${Date.now()}: ${await page.$eval('main table tbody', (rows) => rows.innerText)}`);
  assert_quiet(page);
});

const expected = {
  overview: ['Every GPU', 'Why pods wait', 'Tesla-T4', node],
  pods: ['team-a/holder', 'team-b/holder', node],
  pod: [node, 'GPU', 'created', 'scheduled to its node', 'started'],
  fleet: [node, 'Whole GPUs (pgpu)', 'Nodes: '],
  node: [card, 'team-a/holder', 'team-b/holder', 'Tesla-T4', 'Whole GPUs (pgpu)'],
  waiting: ['team-a/asks', 'team-b/asks', 'nvidia.com/gpu'],
  namespaces: ['team-a', 'team-b'],
  cost: ['Month'],
  declarations: [],
  capacity: ['Tesla', 'pgpu'],
  history: ['Measured utilization of GPUs, per node', node, '%'],
};

page_test('tour: every view of the cluster', async (context) => {
  const page = await sign_in(everyone);
  await wait_for_text(page, '● Live');
  for (const [view, [route, heading]] of Object.entries(views)) {
    await context.test(view, async () => {
      await show(page, route);
      assert.equal(await heading_of(page), heading);
      if (view === 'history') await wait_for_series(page, [node], 30000);
      const shown = await text_of(page);
      for (const text of expected[view]) assert.ok(shown.includes(text), `“${text}” is not on the page: ${shown}`);
      assert.deepEqual(await violations_of(page), []);
      assert_quiet(page);
    });
  }
});

page_test('tour: every chart has data', async () => {
  const page = await sign_in(everyone);
  await show(page, '/history');
  for (const [chart, names] of Object.entries({ utilization: [node], memory: [node], cards: ['Tesla'], namespace_cores: ['team-a', 'team-b'],
    namespace_utilization: ['team-a', 'team-b'] })) {
    await page.select('main select', chart);
    await settle(page);
    await wait_for_series(page, names, 90000);
  }
  await show(page, views.pod[0]);
  await wait_for_series(page, ['main', 'main, given'], 90000);
  assert_quiet(page);
});

page_test('tour: a change in the cluster is shown at once', async () => {
  const page = await sign_in(everyone);
  await show(page, '/waiting');
  await wait_for_text(page, 'team-b/asks');
  await wait_for_text(page, '● Live');
  const began = Date.now();
  execFileSync('kubectl', ['delete', 'pod', '-n', 'team-b', 'asks-more', '--wait=false']);
  await page.waitForFunction(() => !document.querySelector('main').innerText.includes('team-b/asks-more'), { timeout: 10000 });
  console.log(`the page has lost the pod ${Date.now() - began} ms after kubectl was called`);
  assert_quiet(page);
});

page_test('tour: a person of one namespace sees nothing of another', async () => {
  const page = await sign_in({ url, token: process.env.QM_CONSOLE_NARROW_TOKEN });
  assert.deepEqual(await page.$$eval('nav a', (links) => links.map((link) => link.textContent)), ['Overview', 'Pods', 'Waiting pods', 'Namespaces', 'Cost', 'History']);
  const shown = { waiting: 'team-a/asks', namespaces: 'team-a', pod: 'Successfully assigned', history: 'team-a' };
  for (const [view, text] of Object.entries(shown)) {
    await show(page, views[view][0]);
    if (view === 'history') await wait_for_series(page, ['team-a'], 30000);
    await wait_for_text(page, text);
    const everything = await page.evaluate(() => document.documentElement.innerHTML);
    const secrets = view === 'pod' ? ['team-b', card] : ['team-b', node, card]; // which node one's own pod is on, the pod says
    for (const secret of secrets) assert.ok(!everything.includes(secret), `${view} has ${secret}`);
  }
  assert_quiet(page);
  const ask = (path) => fetch(`${url}api/v1/${path}`, { headers: { Authorization: `Bearer ${process.env.QM_CONSOLE_NARROW_TOKEN}` } });
  for (const path of ['fleet', `nodes/${node}`, 'history?chart=utilization', 'history?chart=namespace_cores', 'history?chart=namespace_cores&namespace=team-b', 'pods/team-b/holder',
    'history?chart=pod_memory&namespace=team-b&pod=holder']) {
    const answer = await ask(path);
    assert.equal(answer.status, 403, path);
    assert.ok(!(await answer.text()).includes('team-b'), path);
  }
});

page_test('proxy: the page behind a proxy that ends TLS, by its name', async () => {
  const page = await sign_in({ url: process.env.QM_CONSOLE_PROXY_URL, token });
  await wait_for_text(page, '● Live');
  await show(page, '/fleet');
  await wait_for_text(page, node);
  assert.ok(await page.evaluate(() => window.isSecureContext));
  const [cookie] = await page.browserContext().cookies();
  assert.deepEqual([cookie.secure, cookie.httpOnly, cookie.sameSite], [true, true, 'Strict']);
  await page.reload();
  await page.waitForSelector('nav');
  assert_quiet(page);
});

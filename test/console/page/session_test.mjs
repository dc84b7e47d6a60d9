// The token, errors of the console, live updates, and names that carry HTML.
import assert from 'node:assert/strict';

import { cluster_of, me, with_html } from './kit/answers.mjs';
import { open_page, settle, show, sign_in } from './kit/browser.mjs';
import { token } from './kit/server.mjs';
import { page_test, session } from './kit/session.mjs';
import { text_of, views, wait_for_text } from './kit/views.mjs';

const cookies_of = (page) => page.browserContext().cookies();
const kept_by = (page) => page.evaluate(() => JSON.stringify([location.href, { ...localStorage }, { ...sessionStorage }, document.cookie, history.state,
  document.documentElement.outerHTML]));

page_test('a token becomes a cookie that no script reads: it is nowhere else, and a page that is loaded again is signed in where it was', async () => {
  session.console.answer = cluster_of(10);
  session.console.requests.length = 0;
  const page = await open_page(session.browser, session.console);
  await sign_in(page, session.console, '/capacity');
  assert.ok(!(await kept_by(page)).includes(token));
  const [{ name, httpOnly, sameSite, path, session: ends_with_browser }] = await cookies_of(page);
  assert.deepEqual({ name, httpOnly, sameSite, path, ends_with_browser },
    { name: 'quartermaster-console', httpOnly: true, sameSite: 'Strict', path: '/console/', ends_with_browser: true });
  assert.ok(!(await kept_by(page)).includes('sealed'), 'a script can read the cookie');
  // The token goes to the console once; what follows is asked by the cookie.
  const with_token = session.console.requests.filter(({ headers }) => headers.authorization);
  assert.deepEqual(with_token.map(({ path: asked, method }) => `${method} ${asked}`), ['POST api/v1/session']);
  await page.reload();
  await page.waitForSelector('nav');
  assert.equal(await page.$eval('h1', (heading) => heading.textContent), 'Capacity');
  assert.equal(await page.$('#token'), null);
  assert.deepEqual(page.problems, []);
});

page_test('signing out deletes the cookie: a page that is loaded again asks for a token', async () => {
  session.console.answer = cluster_of(10);
  const page = await open_page(session.browser, session.console);
  await sign_in(page, session.console);
  await page.click('header button');
  await page.waitForSelector('#token');
  assert.deepEqual(await cookies_of(page), []);
  await page.reload();
  await page.waitForSelector('#token');
  assert.deepEqual(page.problems, []);
});

page_test('the page changes nothing: besides its cookie it only reads', async () => {
  session.console.answer = cluster_of(10);
  session.console.requests.length = 0;
  const page = await open_page(session.browser, session.console);
  await sign_in(page, session.console);
  for (const [route] of Object.values(views)) await show(page, route);
  await page.click('header button');
  await page.waitForSelector('#token');
  const changing = session.console.requests.filter(({ method }) => !['GET', 'HEAD'].includes(method));
  assert.deepEqual(changing.map(({ method, path }) => `${method} ${path}`), ['POST api/v1/session', 'DELETE api/v1/session']);
});

page_test('where the browser keeps no cookie the token is in memory only, and gone after a reload', async () => {
  session.console.answer = cluster_of(10);
  session.console.keeps_cookies = false;
  const page = await open_page(session.browser, session.console);
  await sign_in(page, session.console);
  assert.ok(!(await kept_by(page)).includes(token));
  await page.reload();
  await page.waitForSelector('#token');
  session.console.keeps_cookies = true;
});

page_test('on a laptop the form says where the link is', async () => {
  session.console.by = 'link';
  const page = await open_page(session.browser, session.console);
  await page.goto(session.console.url);
  await page.waitForSelector('#token');
  assert.match(await text_of(page), /Open the link that it has printed/);
  assert.ok(!(await text_of(page)).includes('kubectl create token'));
  session.console.by = 'token';
});

page_test('behind a proxy that signs people in there is no form and no button to sign out, and what has ended is asked for by loading again', async () => {
  session.console.by = 'proxy';
  session.console.answer = cluster_of(10);
  const page = await open_page(session.browser, session.console);
  await page.goto(session.console.url);
  await page.waitForSelector('nav');
  assert.equal(await page.$('header button'), null);
  session.console.failure = () => [401, 'unauthenticated', 'the token has expired'];
  await show(page, '/capacity');
  await wait_for_text(page, 'A proxy in front of this console signs people in.');
  assert.equal(await page.$('#token'), null);
  assert.ok(!(await text_of(page)).includes('kubectl create token'));
  session.console.failure = (path) => (path === 'me' ? [401, 'unauthenticated', 'the token has expired'] : null);
  await page.click('.sign_in button');
  await wait_for_text(page, 'it is wrong or has expired');
  assert.equal(await page.$('#token'), null);
  session.console.failure = () => null;
  await page.click('.sign_in button');
  await page.waitForSelector('nav');
  assert.equal(await page.$eval('h1', (heading) => heading.textContent), 'Capacity');
  session.console.by = 'token';
});

page_test('a forged token is refused with a sentence, and an expired one leads back to the form', async () => {
  const page = await open_page(session.browser, session.console);
  await page.goto(session.console.url);
  await page.waitForSelector('#token');
  await page.type('#token', 'forged');
  await page.keyboard.press('Enter');
  await wait_for_text(page, 'it is wrong or has expired');
  assert.equal(await page.$('nav'), null);
  await page.type('#token', token);
  await page.keyboard.press('Enter');
  await page.waitForSelector('nav');
  session.console.failure = () => [401, 'unauthenticated', 'the token has expired'];
  await show(page, '/capacity');
  await page.waitForSelector('#token');
  await wait_for_text(page, 'it is wrong or has expired');
  session.console.failure = () => null;
});

page_test('a caller sees links only to the views that are open to them, and a sentence on the others', async () => {
  const narrow = { ...me, allNamespaces: false, lacksNamespaces: true, namespaces: ['team-a'], views: { ...me.views, fleet: false, node: false, capacity: false } };
  session.console.answer = (path, query) => (path === 'me' ? narrow : cluster_of(10)(path, query));
  session.console.failure = (path) => (path === 'fleet' ? [403, 'forbidden', 'This needs the right to list nodes.'] : null);
  const page = await open_page(session.browser, session.console);
  await sign_in(page, session.console);
  assert.deepEqual(await page.$$eval('nav a', (links) => links.map((link) => link.textContent)), ['Overview', 'Pods', 'Waiting pods', 'Namespaces', 'Cost', 'Declarations', 'History']);
  assert.match(await text_of(page), /some of yours may be missing/);
  assert.match(await text_of(page), /You may not see this\. This needs the right to list nodes\./);
  await show(page, '/history');
  const charts = await page.$$eval('main select', ([chart]) => [...chart.options].map((option) => option.value));
  assert.deepEqual(charts, ['namespace_cores', 'namespace_utilization']);
  assert.equal(session.console.requests.filter(({ path }) => path === 'api/v1/history').at(-1).query.get('namespace'), 'team-a');
  session.console.failure = () => null;
});

page_test('a console that is busy or not ready is asked again after the time that it says', async () => {
  session.console.answer = cluster_of(10);
  let refusals = 2;
  session.console.failure = (path) => {
    if (path !== 'capacity' || refusals-- <= 0) return null;
    return refusals ? [429, 'too_many_requests', '', 1] : [503, 'not_ready', '', 1];
  };
  const page = await open_page(session.browser, session.console);
  await sign_in(page, session.console, '/capacity');
  await wait_for_text(page, 'Too many requests. Trying again in 1 s.');
  await wait_for_text(page, 'The console is not ready yet.');
  await wait_for_text(page, 'NVIDIA-A100-SXM4-80GB');
  session.console.failure = () => null;
});

page_test('an answer that the page cannot show leaves navigation in place', async () => {
  session.console.answer = (path, query) => (path === 'capacity' ? { models: 7 } : cluster_of(10)(path, query));
  const page = await open_page(session.browser, session.console);
  await sign_in(page, session.console, '/capacity');
  await wait_for_text(page, 'The page cannot show this answer');
  await page.click('nav a[href="#/namespaces"]');
  await wait_for_text(page, 'research');
});

page_test('a change on the stream is shown, and what did not change is not sent again', async () => {
  let count = 10;
  const clusters = { 10: cluster_of(10), 11: cluster_of(11) };
  session.console.answer = (path, query) => clusters[count](path, query);
  const page = await open_page(session.browser, session.console);
  await sign_in(page, session.console);
  await wait_for_text(page, '● Live');
  await wait_for_text(page, 'Nodes: 10');
  const asked = () => session.console.requests.filter(({ path }) => path === 'api/v1/fleet');
  session.console.requests.length = 0;
  session.console.change(['capacity']);
  session.console.change(['fleet']);
  await page.waitForResponse((response) => response.url().endsWith('/fleet') && response.status() === 304);
  assert.ok(asked()[0].headers['if-none-match']);
  count = 11;
  for (let again = 0; again < 20; again++) session.console.change(['fleet', 'node']);
  await wait_for_text(page, 'Nodes: 11');
  assert.equal(asked().length, 2, 'twenty changes at once are one question');
  session.console.end_streams();
  await wait_for_text(page, 'Not live');
  await wait_for_text(page, '● Live');
  assert.deepEqual(page.problems, []);
});

page_test('an answer that is cut off is asked for again, and the last one stays', async () => {
  let count = 10;
  const clusters = { 10: cluster_of(10), 11: cluster_of(11) };
  session.console.answer = (path, query) => clusters[count](path, query);
  const page = await open_page(session.browser, session.console);
  await sign_in(page, session.console);
  await wait_for_text(page, 'Nodes: 10');
  count = 11;
  session.console.longest_body = 50;
  session.console.change(['fleet']);
  await wait_for_text(page, 'The console does not answer. Trying again in 5 s. What follows is the last answer.');
  await wait_for_text(page, 'Nodes: 10');
  session.console.longest_body = Infinity;
  await wait_for_text(page, 'Nodes: 11');
});

// 40 KB a second, 300 ms away: a bad line.
const bad_line = { offline: false, downloadThroughput: 40000, uploadThroughput: 40000, latency: 300 };

page_test.long('on a bad line 5,000 nodes come, and after a time without any line the page is live again by itself', async (context) => {
  const cluster = cluster_of(5000);
  let fleet = cluster('fleet');
  session.console.answer = (path, query) => (path === 'fleet' ? fleet : cluster(path, query));
  const page = await open_page(session.browser, session.console);
  const devtools = await page.createCDPSession();
  await devtools.send('Network.enable');
  await devtools.send('Network.emulateNetworkConditions', bad_line);
  const began = performance.now();
  await sign_in(page, session.console);
  await page.waitForSelector('.scroll .row', { timeout: 120000 });
  const seconds = (performance.now() - began) / 1000;
  context.diagnostic(`the first rows of 5,000 nodes after ${seconds.toFixed(1)} s`);
  assert.ok(seconds > 3, 'the line is not slow');
  await wait_for_text(page, '● Live');

  await devtools.send('Network.emulateNetworkConditions', { ...bad_line, offline: true });
  session.console.end_streams();
  fleet = { ...fleet, nodes: fleet.nodes.slice(1) };
  await wait_for_text(page, 'Not live since');
  await wait_for_text(page, 'Nodes: 5,000');
  await devtools.send('Network.emulateNetworkConditions', bad_line);
  await page.waitForFunction(() => document.body.innerText.includes('● Live'), { timeout: 60000 });
  session.console.change(['fleet']); // as the console does first on each stream
  await page.waitForFunction(() => document.body.innerText.includes('Nodes: 4,999'), { timeout: 120000 });
});

page_test('an API server that does not answer is named with the time from which what is shown is', async () => {
  session.console.answer = cluster_of(10);
  const page = await open_page(session.browser, session.console);
  await sign_in(page, session.console);
  await wait_for_text(page, '● Live');
  const hour_ago = await page.evaluate(() => new Intl.DateTimeFormat('en', { hour: '2-digit', minute: '2-digit', hourCycle: 'h23' }).format(Date.now() - 3600e3).slice(0, 2));
  session.console.say('silent', { seconds: 3600 });
  await wait_for_text(page, 'The API server has not answered since');
  const said = await page.$eval('.live', (element) => element.textContent);
  assert.ok(said.includes(`since ${hour_ago}`), `${said}: not ${hour_ago}`);
  session.console.say('heard', {});
  await wait_for_text(page, '● Live');
});

page_test('an operator that is gone is named in both languages with the time since which none leads', async () => {
  session.console.answer = cluster_of(10);
  const page = await open_page(session.browser, session.console);
  await sign_in(page, session.console);
  await wait_for_text(page, '● Live');
  const notice = () => page.$eval('.leaderless', (element) => element.textContent);
  assert.equal(await page.$('.leaderless'), null);
  const hour_ago = await page.evaluate(() => new Intl.DateTimeFormat('en', { hour: '2-digit', minute: '2-digit', hourCycle: 'h23' }).format(Date.now() - 3600e3).slice(0, 2));
  session.console.say('leaderless', { seconds: 3600 });
  await wait_for_text(page, 'nothing is enrolled or repaired');
  assert.match(await notice(), new RegExp(`No operator has led since .* ${hour_ago}:`));
  await page.select('#language', 'zh');
  await wait_for_text(page, '不会纳管或修复任何节点');
  await page.select('#language', 'en');
  session.console.change(['fleet']);
  await wait_for_text(page, 'nothing is enrolled or repaired');
  session.console.say('led', {});
  await page.waitForFunction(() => !document.querySelector('.leaderless'));
  session.console.say('leaderless', { seconds: 3600 });
  await wait_for_text(page, 'nothing is enrolled or repaired');
  session.console.end_streams();
  await wait_for_text(page, '○ Not live');
  await wait_for_text(page, '● Live');
  await wait_for_text(page, 'nothing is enrolled or repaired');
  session.console.change(['fleet']); // what the next stream begins with
  await page.waitForFunction(() => !document.querySelector('.leaderless'));
});

page_test('a stream that says nothing any more is opened again', async () => {
  session.console.answer = cluster_of(10);
  const page = await open_page(session.browser, session.console);
  // Time runs 60 times as fast for what waits longer than 20 seconds.
  await page.evaluateOnNewDocument(() => {
    const real = window.setTimeout;
    window.setTimeout = (body, pause, ...more) => real(body, pause > 20000 ? pause / 60 : pause, ...more);
  });
  await sign_in(page, session.console);
  await wait_for_text(page, '● Live');
  const opened = () => session.console.requests.filter(({ path }) => path === 'api/v1/stream').length;
  const before = opened();
  await wait_for_text(page, 'Not live since');
  await wait_for_text(page, '● Live');
  assert.ok(opened() > before);
});

page_test('names that carry HTML do nothing', async () => {
  const cluster = cluster_of(10);
  session.console.answer = (path, query) => with_html(cluster(path.startsWith('nodes/') ? 'nodes/x' : path, query));
  for (const language of ['en', 'zh']) {
    const page = await open_page(session.browser, session.console, { language });
    await sign_in(page, session.console);
    for (const [route] of Object.values(views)) {
      await show(page, route.startsWith('/node/') ? `/node/${encodeURIComponent('<img src=x onerror="window.harm=1">')}` : route);
      await settle(page);
      assert.match(await text_of(page), /<img src=x onerror="window\.harm=1">/, route);
      assert.deepEqual(await page.$$eval('main img, main script, main b, main iframe', (found) => found.length), 0, route);
      assert.equal(await page.evaluate(() => window.harm), undefined, route);
    }
    assert.deepEqual(page.problems, []);
    assert.deepEqual(page.elsewhere, []);
  }
});

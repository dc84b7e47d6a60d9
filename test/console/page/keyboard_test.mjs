// Without a mouse: sign in, reach everything that can be used, move in the fleet, open a node.
import assert from 'node:assert/strict';

import { cluster_of, node_name } from './kit/answers.mjs';
import { open_page, settle, show, sign_in } from './kit/browser.mjs';
import { token } from './kit/server.mjs';
import { page_test, session } from './kit/session.mjs';
import { heading_of, views } from './kit/views.mjs';

// All that can be used, each by a number; of a group of radio buttons the chosen one, because arrows do the rest.
function mark_usable() {
  const usable = [...document.querySelectorAll('a[href], button, input, select, [tabindex="0"]')].filter((element) => (
    element.tabIndex >= 0 && !element.disabled && element.checkVisibility() && !(element.type === 'radio' && !element.checked)));
  usable.forEach((element, index) => { element.dataset.usable = index; });
  return usable.map((element) => element.outerHTML.slice(0, 120));
}

page_test('the tab key reaches everything on every view, and the focus can be seen', async () => {
  session.console.answer = cluster_of(10);
  const page = await open_page(session.browser, session.console);
  await sign_in(page, session.console);
  for (const [view, [route]] of Object.entries(views)) {
    await show(page, route);
    await page.evaluate(() => document.activeElement.blur());
    const usable = await page.evaluate(mark_usable);
    const reached = new Set();
    for (let step = 0; step < usable.length * 2 + 12; step++) {
      await page.keyboard.press('Tab');
      // After the last element the focus goes to the browser's own window and comes back from there, some time later.
      await page.waitForFunction(() => document.hasFocus() || document.activeElement === document.body);
      const focus = await page.evaluate(() => {
        const element = document.activeElement;
        return {
          index: element.dataset.usable,
          is_seen: element === document.body || getComputedStyle(element).outlineStyle !== 'none',
          html: element.outerHTML.slice(0, 120),
          page: `page ${document.hasFocus() ? 'active' : 'not active'}, :focus ${element.matches(':focus')}, :focus-visible ${element.matches(':focus-visible')}`,
        };
      });
      assert.ok(focus.is_seen, `${view}: the focus on ${focus.html} cannot be seen (${focus.page})`);
      if (focus.index !== undefined) reached.add(Number(focus.index));
      if (reached.size === usable.length) break;
    }
    const missed = usable.filter((element, index) => !reached.has(index));
    assert.deepEqual(missed, [], view);
  }
});

page_test('signing in, the views, the fleet and a node by keyboard alone', async () => {
  session.console.answer = cluster_of(5000);
  const page = await open_page(session.browser, session.console);
  await page.goto(session.console.url);
  await page.waitForSelector('#token');
  const tab_to = async (selector) => {
    for (let step = 0; step < 40; step++) {
      if (await page.evaluate((wanted) => document.activeElement.matches(wanted), selector)) return;
      await page.keyboard.press('Tab');
    }
    assert.fail(`the tab key does not reach ${selector}`);
  };
  await tab_to('#token');
  await page.keyboard.type(token);
  await page.keyboard.press('Enter');
  await page.waitForSelector('[role=grid]');
  assert.equal(await heading_of(page), 'Overview');

  // Enter on a link of the navigation; the heading then has the focus.
  await tab_to('nav a[href="#/capacity"]');
  await page.keyboard.press('Enter');
  await settle(page);
  assert.equal(await heading_of(page), 'Capacity');
  assert.equal(await page.evaluate(() => document.activeElement.tagName), 'H1');
  await show(page, '/fleet');

  await tab_to('.scroll [role=row]');
  const active = () => page.evaluate(() => document.activeElement.querySelector('a')?.textContent);
  assert.equal(await active(), node_name(0));
  for (const [key, index] of [['ArrowDown', 1], ['End', 4999], ['ArrowDown', 4999], ['ArrowUp', 4998], ['Home', 0]]) {
    await page.keyboard.press(key);
    await settle(page);
    assert.equal(await active(), node_name(index), key);
    const is_in_sight = await page.evaluate(() => {
      const row = document.activeElement.getBoundingClientRect();
      const box = document.querySelector('.scroll').getBoundingClientRect();
      return row.top >= box.top - 1 && row.bottom <= box.bottom + 1;
    });
    assert.ok(is_in_sight, `${key}: the row is not in sight`);
  }
  await page.keyboard.press('PageDown');
  await settle(page);
  const target = await active();
  assert.notEqual(target, node_name(0));
  await page.keyboard.press('Enter');
  await settle(page);
  assert.equal(await heading_of(page), `Node ${target}`);
  assert.deepEqual(page.problems, []);
});

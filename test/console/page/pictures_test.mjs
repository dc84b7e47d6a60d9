// Pictures of every view in light and dark, for the documents: QM_SCREENSHOTS=write. Without it each view must give a picture that is not blank.
import assert from 'node:assert/strict';
import { mkdirSync, writeFileSync } from 'node:fs';

import { cluster_of } from './kit/answers.mjs';
import { open_page, show, sign_in } from './kit/browser.mjs';
import { page_test, session } from './kit/session.mjs';
import { views } from './kit/views.mjs';

const folder = new URL('../../../docs/images/console/', import.meta.url);

page_test('a picture of every view in light and dark', async () => {
  session.console.answer = cluster_of(500);
  if (process.env.QM_SCREENSHOTS === 'write') mkdirSync(folder, { recursive: true });
  for (const theme of ['light', 'dark']) {
    const page = await open_page(session.browser, session.console, { theme });
    await sign_in(page, session.console);
    await page.waitForFunction(() => document.body.innerText.includes('● Live'));
    for (const [view, [route]] of Object.entries(views)) {
      await show(page, route);
      await page.evaluate(() => document.activeElement.blur());
      const picture = await page.screenshot();
      assert.ok(picture.length > 10000, `${view} in ${theme} is blank: ${picture.length} bytes`);
      if (process.env.QM_SCREENSHOTS === 'write') writeFileSync(new URL(`${view}-${theme}.png`, folder), picture);
    }
  }
});

const sizes = { wide: [1920, 1080], phone: [390, 844] };

page_test('a picture of the first screen at the width of a desk and of a phone', async () => {
  session.console.answer = cluster_of(48); // so many that each GPU is seen
  for (const theme of ['light', 'dark']) {
    for (const [name, [width, height]] of Object.entries(sizes)) {
      const page = await open_page(session.browser, session.console, { theme });
      await page.setViewport({ width, height });
      await sign_in(page, session.console, '/overview');
      await page.waitForFunction(() => document.body.innerText.includes('● Live') && document.querySelector('.reasons .finding'));
      await page.evaluate(() => document.activeElement.blur());
      const picture = await page.screenshot();
      assert.ok(picture.length > 20000, `${name} in ${theme} is blank: ${picture.length} bytes`);
      if (process.env.QM_SCREENSHOTS === 'write') writeFileSync(new URL(`overview-${name}-${theme}.png`, folder), picture);
    }
  }
});

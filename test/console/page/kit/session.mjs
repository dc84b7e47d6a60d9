// What browser tests share: one Chromium and one console, stopped after the last test. Pages are closed after each.
import { after, before, test } from 'node:test';

import { cluster_of } from './answers.mjs';
import { close_pages, start_browser } from './browser.mjs';
import { start_console } from './server.mjs';

export const session = {};
before(async () => {
  session.browser = await start_browser();
  session.console = await start_console(cluster_of(10));
});
after(async () => {
  await session.browser?.close();
  await session.console?.stop();
});

/// A test whose pages are closed after it.
export function page_test(name, body) {
  test(name, async (context) => {
    try {
      await body(context);
    } finally {
      await close_pages();
    }
  });
}

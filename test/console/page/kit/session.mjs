// What browser tests share: one Chromium and one console, stopped after the last test.
import { after, before } from 'node:test';

import { cluster_of } from './answers.mjs';
import { start_browser } from './browser.mjs';
import { start_console } from './server.mjs';

export { page_test } from './browser.mjs';
export const session = {};
before(async () => {
  session.browser = await start_browser();
  session.console = await start_console(cluster_of(10));
});
after(async () => {
  await session.browser?.close();
  await session.console?.stop();
});

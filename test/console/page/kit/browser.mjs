// Chromium without a window, and pages that remember what went wrong in them.
import { readFileSync } from 'node:fs';
import { test } from 'node:test';

import puppeteer from 'puppeteer-core';

const axe = readFileSync(new URL('../node_modules/axe-core/axe.min.js', import.meta.url), 'utf8');

/// Chromium without a window; `more`: switches besides those that every test has.
export function start_browser(...more) {
  return puppeteer.launch({
    executablePath: process.env.QM_CHROMIUM || '/usr/bin/chromium',
    // Root has no sandbox in a container. The other switches keep Chromium from asking its vendor for updates and lists.
    args: ['--no-sandbox', '--disable-dev-shm-usage', '--disable-background-networking', '--disable-component-update', '--no-first-run', '--disable-sync', ...more],
    defaultViewport: { width: 1366, height: 768 },
    protocolTimeout: 600_000, // a busy machine can need minutes for 300 frames
  });
}

const contexts = new Set();

/// Closes the pages of a test, also of one that failed: a page that stays open asks the console for news.
export async function close_pages() {
  for (const context of contexts) await context.close();
  contexts.clear();
}

/// A test of `set`, short or long, whose pages are closed after it. QM_SET chooses one of them; without it both run.
const in_set = (set) => (name, body) => {
  if (process.env.QM_SET && process.env.QM_SET !== set) return;
  test(name, async (context) => {
    try {
      await body(context);
    } finally {
      await close_pages();
    }
  });
};
export const page_test = in_set('short');
page_test.long = in_set('long');

/// A page with `problems` (console errors and warnings, exceptions, failed requests) and `elsewhere` (requests to anywhere but the console).
export async function open_page(browser, console_, { theme = 'light', language = 'en' } = {}) {
  const context = await browser.createBrowserContext();
  contexts.add(context);
  const page = await context.newPage();
  page.problems = [];
  page.elsewhere = [];
  page.on('console', (message) => { if (['error', 'warn', 'warning'].includes(message.type())) page.problems.push(message.text()); });
  page.on('pageerror', (error) => page.problems.push(String(error)));
  page.on('requestfailed', (request) => {
    const reason = request.failure()?.errorText;
    if (reason !== 'net::ERR_ABORTED') page.problems.push(`${request.url()}: ${reason}`);
  });
  page.on('request', (request) => { if (!request.url().startsWith(console_.url)) page.elsewhere.push(request.url()); });
  await page.emulateMediaFeatures([{ name: 'prefers-color-scheme', value: theme }]);
  await page.evaluateOnNewDocument((name) => Object.defineProperty(navigator, 'language', { get: () => name }), language);
  return page;
}

/// Opens the page as the link of `quartermaster console` does, and goes to a view.
export async function sign_in(page, console_, route = '/fleet') {
  await page.goto(`${console_.url}#token=${console_.token}`);
  await page.waitForSelector('nav');
  await show(page, route);
}

/// Goes to a view as a link does, and waits until its answer is there.
export async function show(page, route) {
  await page.evaluate((hash) => { location.hash = hash; }, `#${route}`);
  await settle(page);
}

export async function settle(page) {
  await page.waitForFunction(() => !document.querySelector('[role="status"].notice')?.textContent.includes('…'));
  await page.waitForFunction(() => new Promise((done) => { requestAnimationFrame(() => requestAnimationFrame(() => done(true))); }));
}

/// Serious and critical violations that axe-core finds, one text per violation.
export async function violations_of(page) {
  const found = await page.evaluate(`(async () => {
    if (!window.axe) { ${axe} }
    const result = await axe.run(document, { resultTypes: ['violations'] });
    return result.violations.filter(({ impact }) => ['serious', 'critical'].includes(impact))
      .map(({ id, help, nodes }) => id + ': ' + help + ': ' + nodes.slice(0, 3).map((node) => node.html.slice(0, 160)).join(' | '));
  })()`);
  return found;
}

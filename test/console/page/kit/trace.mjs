// What Chromium's trace says of frames: CPU time of the page's own thread, in each frame and by kind of work. Unlike frames a second it
// depends little on other work on the machine.

const task_name = 'ThreadControllerImpl::RunTask';
const kinds = {
  FunctionCall: 'script', EventDispatch: 'script', FireAnimationFrame: 'script', TimerFire: 'script', UpdateLayoutTree: 'style', Layout: 'layout',
  PrePaint: 'paint', Paint: 'paint', Layerize: 'paint', Commit: 'paint',
};

/// Runs `body` and returns {result, events} of all processes of the browser.
export async function trace(page, body) {
  await page.tracing.start({ categories: ['toplevel', 'devtools.timeline'] });
  const result = await body();
  const { traceEvents } = JSON.parse(Buffer.from(await page.tracing.stop()).toString());
  return { result, events: traceEvents };
}

const thread_of = (event) => `${event.pid}/${event.tid}`;
const cpu_ms = (event) => (event.tdur ?? 0) / 1000;

// The thread of the page that scrolls: other pages of the browser draw a frame now and then.
function main_thread(events) {
  const counts = new Map();
  for (const event of events) {
    if (event.name === 'FireAnimationFrame') counts.set(thread_of(event), (counts.get(thread_of(event)) ?? 0) + 1);
  }
  return [...counts].sort(([, one], [, other]) => other - one)[0]?.[0];
}

// Events lie in each other: what an event takes itself is its time without that of the events in it.
function times_by_kind(events) {
  const times = { script: 0, style: 0, layout: 0, paint: 0, other: 0 };
  const around = [];
  for (const event of [...events].sort((one, other) => one.ts - other.ts || other.dur - one.dur)) {
    while (around.length && around.at(-1).ts + around.at(-1).dur <= event.ts) around.pop();
    if (around.length) times[kinds[around.at(-1).name] ?? 'other'] -= cpu_ms(event);
    times[kinds[event.name] ?? 'other'] += cpu_ms(event);
    around.push(event);
  }
  return times;
}

/// {frames, kinds, others}: CPU milliseconds of the page's thread in each frame; of the same thread by kind of work, and of all other
/// threads of the browser (raster, layers, display), over the whole trace. A frame is a task in which frame callbacks ran, and the tasks
/// up to the next such one: a page may ask for several callbacks in a frame.
export function frames_of(events) {
  const main = main_thread(events);
  const spans = events.filter((event) => event.ph === 'X');
  const own = spans.filter((event) => thread_of(event) === main);
  const starts = own.filter((event) => event.name === 'FireAnimationFrame').map((event) => event.ts).sort((one, other) => one - other);
  const frames = [];
  let next = 0;
  for (const task of own.filter((event) => event.name === task_name).sort((one, other) => one.ts - other.ts)) {
    const first = next;
    while (next < starts.length && starts[next] < task.ts + task.dur) next += 1;
    if (next > first) frames.push(0);
    if (frames.length) frames[frames.length - 1] += cpu_ms(task);
  }
  const elsewhere = spans.filter((event) => thread_of(event) !== main && [task_name, 'ThreadPool_RunTask'].includes(event.name));
  return { frames, kinds: times_by_kind(own), others: elsewhere.reduce((sum, event) => sum + cpu_ms(event), 0) };
}

/// CPU milliseconds of the longest task of the page's thread.
export function longest_task(events) {
  const main = main_thread(events);
  return Math.max(0, ...events.filter((event) => event.name === task_name && thread_of(event) === main).map(cpu_ms));
}

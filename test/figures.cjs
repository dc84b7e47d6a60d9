#!/usr/bin/env node
// figures.cjs [--check]: makes the tables of docs/performance.md of bench/figures.json, which the benches write (./dev bench NAME --record).
// A table stands between two comments, <!-- figures BENCH[: BEGINNING] --> and <!-- end of figures -->. It has the rows of that bench whose name
// begins so. Names of the form "100 agents, WHAT" become a column for each number. Nothing but these two files decides the bytes.
//   --check  writes nothing; a document that differs is a finding. `./dev lint` calls it so, and `./dev fmt` without it.
'use strict';
const { readFileSync, writeFileSync } = require('fs');
const { join } = require('path');

const root = join(__dirname, '..');
const file = join(root, 'docs/performance.md');

const text = (value) => (value === null ? '-' : value.toLocaleString('en-US', Math.abs(value) >= 1000 ? { maximumFractionDigits: 0 } : { maximumSignificantDigits: 4 }));
const amount = (value, unit) => (value === null ? '-' : text(value) + (unit ? ' ' + unit : ''));
const number = (value) => String(Number(value.toPrecision(3)));
const span = (row) => (row.interval ? ` [${row.interval.map(number).join(', ')}]` : '');
const ratio = (row) => (row.ratio === null ? '-' : number(row.ratio) + span(row));

/// Of a comparison a target is a ratio, which the upper end of the interval meets; of a figure without peer it is in the figure's unit.
function target(row) {
  if (row.target === null) return '-';
  const compared = row.ratio !== null;
  const shown = compared ? number(row.target) : amount(row.target, row.unit);
  const reached = compared ? (row.interval ? row.interval[1] : row.ratio) : row.ours;
  return reached <= row.target ? shown : `${shown}, **missed**`;
}

function origin(row) {
  const { machine, date, commit, kubernetes, form } = row;
  const where = `${machine.processor || 'a processor not recorded'}, ${machine.cores} cores`;
  return `Recorded ${date} (${commit}): ${where}${kubernetes ? ', Kubernetes ' + kubernetes : ''}. Form: ${form}.`;
}

/// Lines of at most 120 characters; those after the first are indented.
function wrapped(sentence, indent) {
  const lines = [];
  for (const word of sentence.split(' ')) {
    const last = lines.length - 1;
    if (last >= 0 && lines[last].length + 1 + word.length <= 120) lines[last] += ' ' + word;
    else lines.push((last < 0 ? '' : indent) + word);
  }
  return lines;
}

function table(head, lines) {
  return [head, head.map(() => '---'), ...lines].map((cells) => `|${cells.map((cell) => ` ${cell} `).join('|')}|`.replace(/ --- /g, '---'));
}

/// The same figure for several numbers of something: a column for each.
function bySize(rows) {
  const sizes = [...new Set(rows.map((row) => row.name.match(/^\d+/)[0]))];
  const what = sizes.map((size) => `${Number(size).toLocaleString('en-US')} ${rows[0].name.match(/^\d+ (\w+)/)[1]}`);
  const names = [...new Set(rows.map((row) => row.name.replace(/^\d+ \w+, /, '')))];
  return table(['figure', ...what, 'target'], names.map((name) => {
    const found = sizes.map((size) => rows.find((row) => row.name.startsWith(size + ' ') && row.name.endsWith(', ' + name)));
    const wanted = found.find((row) => row && row.target !== null);
    return [name, ...found.map((row) => (row ? amount(row.ours, row.unit) : '-')), wanted ? target(wanted) : '-'];
  }));
}

function lines(bench, beginning, recorded) {
  const rows = recorded.filter((row) => row.bench === bench && row.name.startsWith(beginning));
  if (rows.length === 0) throw new Error(`bench/figures.json has no figure of ${bench}${beginning ? ' that begins with "' + beginning + '"' : ''}`);
  const name = (row) => row.name.slice(beginning.length).replace(/^[ ,:]+/, '');
  const compared = rows.some((row) => row.peer !== null || row.ratio !== null);
  const origins = [...new Set(rows.map(origin))];
  const mark = (row) => (origins.length > 1 ? ` (${origins.indexOf(origin(row)) + 1})` : '');
  const body = rows.every((row) => /^\d+ \w+, /.test(row.name)) ? bySize(rows)
    : compared ? table(['figure', 'ours', 'peer', 'ratio [95 %]', 'target'],
        rows.map((row) => [name(row) + mark(row), amount(row.ours, row.unit), amount(row.peer, row.unit), ratio(row), target(row)]))
    : table(['figure', 'measured', 'target'], rows.map((row) => [name(row) + mark(row), amount(row.ours, row.unit), target(row)]));
  return [...body, '', ...origins.flatMap((one, i) => (origins.length > 1 ? wrapped(`- (${i + 1}) ${one}`, '  ') : wrapped(one, '')))];
}

function made(document, recorded) {
  let tables = 0;
  const out = document.replace(/(<!-- figures (\w+)(?:: (.+?))? -->\n)[^]*?(<!-- end of figures -->)/g, (_, begin, bench, beginning, end) => {
    ++tables;
    return `${begin}\n${lines(bench, beginning || '', recorded).join('\n')}\n\n${end}`;
  });
  const begun = document.match(/<!-- figures /g) || [];
  if (tables !== begun.length) throw new Error('docs/performance.md: a "<!-- figures" comment has no "<!-- end of figures -->"');
  const benches = [...new Set(recorded.map((row) => row.bench))];
  const missing = benches.filter((bench) => !new RegExp(`<!-- figures ${bench}[ :]`).test(document));
  if (missing.length > 0) throw new Error(`docs/performance.md quotes no figures of: ${missing.join(', ')}`);
  return out;
}

try {
  const document = readFileSync(file, 'utf8');
  const wanted = made(document, JSON.parse(readFileSync(join(root, 'bench/figures.json'), 'utf8')));
  if (wanted !== document && process.argv[2] === '--check') {
    throw new Error('docs/performance.md is not what test/figures.cjs makes of bench/figures.json: ./dev fmt');
  }
  if (wanted !== document) writeFileSync(file, wanted);
} catch (error) {
  console.log(`figures: ${error.message}`);
  process.exitCode = 1;
}

// links.cjs: every link between the documents leads to a file and a heading that are there, also where a message, the chart or the code
// names them ('docs/install.md, "Removing"'). Prints one line per link that leads nowhere. `links.cjs FILE...` reads these files alone.
'use strict';
const { execFileSync } = require('node:child_process');
const { existsSync, readFileSync } = require('node:fs');
const { dirname, join, normalize } = require('node:path');

const root = join(__dirname, '..');
const files = process.argv.length > 2 ? process.argv.slice(2)
  : execFileSync('git', ['ls-files', '-co', '--exclude-standard', '*.md', 'text', 'cli', 'reconcilers', 'agent', 'api', 'kube', 'controller',
      'crds', 'charts', 'dev', 'test/*.go', 'test/*.cpp', 'test/*.sh'], { cwd: root, encoding: 'utf8' }).split('\n').filter(Boolean);
// Documents of other projects, by the names of ours.
const foreign = /docs\/(plugin-build-guide|moduleplugin|moduleconfig|moduleinfo|scriptspluginconfig)\.md/;

const read = (file) => readFileSync(join(root, file), 'utf8');
const known = new Map();
const plain = (heading) => heading.replace(/`/g, '').trim();
function headings(file) {
  if (!known.has(file)) {
    const text = read(file).replace(/^ *```[^]*?^ *```/gm, '');
    known.set(file, [...text.matchAll(/^#+ (.*)$/gm)].map((match) => plain(match[1])));
  }
  return known.get(file);
}
const anchor = (heading) => heading.toLowerCase().replace(/[^\p{L}\p{N} _-]/gu, '').replace(/ /g, '-');

let wrong = 0;
function report(file, text, at, what) {
  const line = text.slice(0, at).split('\n').length;
  console.log(`${file}:${line}: ${what}`);
  wrong = 1;
}
function check_section(file, text, at, target, section) {
  const name = plain(section.replace(/\s+/g, ' '));
  // Some name a command or a bold paragraph: only what begins as a heading does is one.
  if (!headings(target).some((heading) => heading === name || heading.startsWith(`${name}:`) || heading.startsWith(`${name} (`)) &&
      !read(target).replace(/\s+/g, ' ').includes(`**${name}`)) report(file, text, at, `${target} has no section "${name}"`);
}

for (const file of files) {
  if (file === 'test/links_sample.md' && process.argv.length === 2) continue;  // its mistakes are what `./dev lint` looks for
  if (!existsSync(join(root, file)) || !/\.(md|yaml|tpl|txt|cpp|hpp|go|sh)$|^dev$/.test(file)) continue;
  const text = read(file);
  if (file.endsWith('.md')) {
    const prose = text.replace(/^ *```[^]*?^ *```/gm, (block) => block.replace(/[^\n]/g, ' ')).replace(/`[^`\n]*`/g, (span) => ' '.repeat(span.length));
    for (const match of prose.matchAll(/\]\((?!https?:|mailto:)([^)#\s]*)(?:#([^)\s]+))?\)(\.?,\s"([A-Z][^"]+)")?/g)) {
      const target = match[1] === '' ? file : normalize(join(dirname(file), match[1]));
      if (!existsSync(join(root, target))) report(file, text, match.index, `${match[1]} is not there`);
      else if (match[2] && target.endsWith('.md') && !headings(target).map(anchor).includes(match[2])) {
        report(file, text, match.index, `${target} has no #${match[2]}`);
      } else if (match[4]) check_section(file, text, match.index, target, text.slice(match.index).match(/"([A-Z][^"]+)"/)[1]);
    }
  }
  for (const match of text.matchAll(/(?<![\w/.-])docs\/([a-z0-9-]+(?:\.zh)?\.md)(?:(?:,| 的|，) ?\\?"([A-Z][^"\\]+)\\?")?/g)) {
    const target = `docs/${match[1]}`;
    if (foreign.test(target)) continue;
    if (!existsSync(join(root, target))) report(file, text, match.index, `${target} is not there`);
    else if (match[2]) check_section(file, text, match.index, target, match[2]);
  }
}
process.exitCode = wrong;

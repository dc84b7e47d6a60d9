// Reads tests as syntax trees and counts assertions on sentences: literals of six words or more within EXPECT_... and ASSERT_...,
// outside tests that have "golden" in their names. Such a test stands in the way of a better sentence and fails in a build of codes
// (CONTRIBUTING.md, "Words"). Raw strings, documents in YAML and requests of HTTP are data.
// usage: node sentences.cjs [--pending FILE] [--lower] FILE...
// Output: one line per finding, "file:line: text". FILE of --pending has lines "COUNT PATH": that many are known and not reported; a
// file that has fewer must lower its line, so that the list only shrinks. --lower does that.
// Exit code: 0 when nothing was found, 1 otherwise.
const fs = require('fs');
const { Parser, Language } = require('web-tree-sitter');

const longest = 5;

function isSentence(literal) {
  const text = literal.replace(/"\s*"/g, '').slice(1, -1).replace(/\\n/g, '\n');
  if (/^(apiVersion|kind|metadata|spec|list):/.test(text) || text.includes('\\r')) return false;
  return text.split(/\s+/).filter((word) => /^[("'`\\]*[A-Za-z][a-z']*[:;.?!)"'`\\]*$/.test(word)).length > longest;
}

function read(parser, file) {
  const found = [], tree = parser.parse(fs.readFileSync(file, 'utf8'));
  const walk = (node, isChecked) => {
    if (node.type === 'function_definition') {
      const name = node.childForFieldName('declarator')?.text ?? '';
      if (/^TEST/.test(name) && /golden/.test(name)) return;
    }
    if (node.type === 'call_expression' && /^(EXPECT|ASSERT)_/.test(node.childForFieldName('function').text)) isChecked = true;
    if (/^(concatenated_string|string_literal|raw_string_literal)$/.test(node.type)) {
      if (isChecked && node.type !== 'raw_string_literal' && isSentence(node.text))
        found.push({ line: node.startPosition.row + 1,
                     text: 'compares with a sentence: compare code and parameters, or words::english(KEY), or name it golden' });
      return;
    }
    for (let i = 0; i < node.childCount; i++) walk(node.child(i), isChecked);
  };
  walk(tree.rootNode, false);
  tree.delete();
  return found;
}

(async () => {
  let files = process.argv.slice(2), list = '';
  const pending = new Map();
  if (files[0] === '--pending') {
    list = files[1];
    for (const line of fs.readFileSync(list, 'utf8').split('\n').filter(Boolean)) {
      const [count, path] = line.split(' ');
      pending.set(path, Number(count));
    }
    files = files.slice(2);
  }
  const lower = files[0] === '--lower';
  if (lower) files = files.slice(1);
  await Parser.init();
  const parser = new Parser();
  parser.setLanguage(await Language.load(require.resolve('tree-sitter-cpp/tree-sitter-cpp.wasm')));
  let bad = 0;
  const say = (text) => { bad = 1; console.log(text); };
  const left = [];
  for (const file of files) {
    const found = read(parser, file), known = pending.get(file) ?? 0;
    if (found.length > known) for (const { line, text } of found) say(`${file}:${line}: ${text}`);
    if (found.length < known && !lower) say(`${file}:1: ${found.length} sentences are left and ${list} says ${known}: lower it`);
    if (Math.min(found.length, known) > 0) left.push(`${Math.min(found.length, known)} ${file}\n`);
    pending.delete(file);
  }
  if (lower) fs.writeFileSync(list, left.sort((a, b) => (a.split(' ')[1] < b.split(' ')[1] ? -1 : 1)).join(''));
  for (const [file] of lower ? [] : pending) say(`${file}:1: is in ${list} and is no file: take it out`);
  process.exit(bad);
})();

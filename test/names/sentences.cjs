// Reads tests as syntax trees and counts assertions on sentences: literals of six words or more within EXPECT_... and ASSERT_...,
// outside tests that have "golden" in their names. Such a test stands in the way of a better sentence and fails in a build of codes
// (CONTRIBUTING.md, "Words"). Raw strings, documents in YAML and requests of HTTP are data.
// usage: node sentences.cjs [--pending FILE] [--lower] FILE...
// Output: one line per finding, "file:line: text". --pending: see pending.cjs.
// Exit code: 0 when nothing was found, 1 otherwise.
const fs = require('fs');
const { Parser, Language } = require('web-tree-sitter');

const Pending = require('./pending.cjs');
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
  let bad = 0;
  const say = (text) => { bad = 1; console.log(text); };
  const pending = new Pending(process.argv.slice(2), 'sentences', say);
  await Parser.init();
  const parser = new Parser();
  parser.setLanguage(await Language.load(require.resolve('tree-sitter-cpp/tree-sitter-cpp.wasm')));
  for (const file of pending.files) {
    const found = read(parser, file);
    if (pending.hasNew(file, found.length)) for (const { line, text } of found) say(`${file}:${line}: ${text}`);
  }
  pending.end();
  process.exit(bad);
})();

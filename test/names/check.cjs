// Reads C++ as a syntax tree and reports names and lengths that make a reader stop:
//   - a pronoun, preposition or question word as the name of a variable, parameter, member or enumerator
//   - a function of more than 80 lines
//   - a type at namespace scope whose name stands for more than two types; tests do not count, nor types within a class
//   - a word of test/prose/words.yml in a comment or a string literal; code spans and words like a/b, a.b, a-b do not count
// Of the catalogue of messages (text/messages.en.yaml) the words are read alone.
// usage: node check.cjs [--pending FILE] [--lower] FILE...
// Output: one line per finding, "file:line: text". --pending: see pending.cjs; words of both kinds count.
// Exit code: 0 when nothing was found, 1 otherwise.
const fs = require('fs');
const { Parser, Language } = require('web-tree-sitter');

const Pending = require('./pending.cjs');
const words = require('./words.cjs');
const longest = 80;

const rules = [];
for (const line of fs.readFileSync(`${__dirname}/../prose/words.yml`, 'utf8').split('\n')) {
  const [, expected, pattern] = line.match(/expected: (.*), pattern: "?\/(.*)\/i"?\}$/) ?? [];
  if (pattern) rules.push({ expected, pattern: new RegExp(pattern.replaceAll('\\\\', '\\').replaceAll(' ', '\\s+'), 'gi') });
}

// Reports words of the list. `text` has its line breaks, so that a finding has its line; a literal of one word is no sentence.
function readEnglish(text, row, found) {
  const english = text.replace(/`[^`\n]*`|\S*[\/_.=-][\w{]\S*/g, (code) => code.replace(/\S/g, '#'));
  for (const { expected, pattern } of rules)
    for (const match of english.matchAll(pattern))
      found.push({ line: row + 1 + english.slice(0, match.index).split('\n').length - 1, word: true,
                   text: `"${match[0].replace(/\s+/g, ' ')}" => ${expected}` });
}

// "type name(value);" in a function is a variable, although it reads like the declaration of a function.
function isVariable(declarator) {
  if (declarator.parent.type !== 'declaration') return false;
  for (let node = declarator.parent; node; node = node.parent) {
    if (node.type === 'compound_statement') return true;
    if (node.type === 'field_declaration_list') return false;
  }
  return false;
}

// The node's name is the one that `parent` declares.
function declares(parent, node) {
  const named = (field) => parent.childrenForFieldName(field).some((child) => child.id === node.id);
  switch (parent.type) {
    case 'parameter_declaration': case 'optional_parameter_declaration': case 'field_declaration': case 'declaration':
    case 'init_declarator': case 'array_declarator': case 'for_range_loop':
      return named('declarator');
    case 'function_declarator':
      return named('declarator') && isVariable(parent);
    case 'enumerator':
      return named('name');
    case 'reference_declarator': case 'pointer_declarator': case 'variadic_declarator': case 'attributed_declarator':
    case 'structured_binding_declarator':
      return true;
    default:
      return false;
  }
}

// A struct, class, enum or alias that is defined here and belongs to no class or function. `using kind = step::kind` only shortens.
function isTypeOfNamespace(node) {
  if (!/^(struct|class|enum)_specifier$|^alias_declaration$/.test(node.type)) return false;
  if (node.type === 'alias_declaration') {
    if (node.childForFieldName('type').text.endsWith(`::${node.childForFieldName('name').text}`)) return false;
  } else if (!node.childForFieldName('body')) return false;
  for (let outer = node.parent; outer; outer = outer.parent)
    if (!/^(namespace_definition|declaration_list|translation_unit|template_declaration|linkage_specification)$/.test(outer.type))
      return false;
  return true;
}

// The catalogue of messages: a line is `name: "words"`.
function readMessages(file) {
  const found = [];
  fs.readFileSync(file, 'utf8').split('\n').forEach((line, row) => {
    const [, words] = line.match(/^ *\w+: "(.*)"$/) ?? [];
    if (words && /\s/.test(words)) readEnglish(words, row, found);
  });
  return found;
}

function read(parser, file, types) {
  if (file.endsWith('.yaml')) return readMessages(file);
  const found = [], tree = parser.parse(fs.readFileSync(file, 'utf8'));
  const comment = { text: '', row: 0, end: -2 };  // lines of // that follow each other are one text
  const flush = () => { readEnglish(comment.text, comment.row, found); comment.text = ''; };
  const walk = (node) => {
    if (node.type === 'comment') {
      const text = node.text.replace(/^\/\/+<?/, ''), row = node.startPosition.row;
      if (row === comment.end + 1 && comment.text) comment.text += '\n' + text;
      else { flush(); comment.text = text; comment.row = row; }
      comment.end = node.endPosition.row;
    }
    if (/^(concatenated_string|string_literal|raw_string_literal)$/.test(node.type)) {
      const text = node.text.replace(/"(\s*)"/g, '$1').replace(/\\n/g, '  ');
      if (/\s/.test(text)) readEnglish(text, node.startPosition.row, found);
      return;
    }
    const line = node.startPosition.row + 1;
    const name = node.type === 'identifier' || node.type === 'field_identifier';
    if (name && words.has(node.text.replace(/_$/, '')) && declares(node.parent, node))
      found.push({ line, word: true, text: `"${node.text}" is no noun: name the thing` });
    const type = isTypeOfNamespace(node) ? node.childForFieldName('name')?.text : undefined;
    if (type) {  // aliases of the same type are one thing
      if (!types.has(type)) types.set(type, new Map());
      types.get(type).set(node.childForFieldName('type')?.text ?? `${file}:${line}`, `${file}:${line}`);
    }
    if (node.type === 'function_definition' && node.endPosition.row - node.startPosition.row >= longest)
      found.push({ line, text: `a function of ${node.endPosition.row - node.startPosition.row + 1} lines; allowed are ${longest}` });
    for (let i = 0; i < node.childCount; i++) walk(node.child(i));
  };
  walk(tree.rootNode);
  flush();
  tree.delete();
  return found;
}

(async () => {
  let bad = 0;
  const say = (text) => { bad = 1; console.log(text); };
  const pending = new Pending(process.argv.slice(2), 'words', say);
  await Parser.init();
  const parser = new Parser();
  parser.setLanguage(await Language.load(require.resolve('tree-sitter-cpp/tree-sitter-cpp.wasm')));
  const types = new Map();
  for (const file of pending.files) {
    const found = read(parser, file, /^test\/.*pp$/.test(file) ? new Map() : types);
    const hasNew = pending.hasNew(file, found.filter((f) => f.word).length);
    for (const f of found) if (!f.word || hasNew) say(`${file}:${f.line}: ${f.text}`);
  }
  for (const [type, places] of types)
    if (places.size > 2) say(`${[...places.values()].join(' ')}: the type name "${type}" stands for ${places.size} types`);
  pending.end();
  process.exit(bad);
})();

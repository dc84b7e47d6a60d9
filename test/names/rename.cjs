// Renames variables, parameters and loop variables that test/names/check.cjs objects to, where the code itself says the
// noun: a loop variable is the singular of its range, a parameter is named for its type. All else is left alone.
// usage: node rename.cjs [--show] FILE...      (afterwards: ./dev fmt, and build: the compiler finds what clashes)
//
// A name is changed in one scope, with every use there; it is left where the new one is used or declared in or around
// the scope, and where the scope was not parsed. Members are left: other files use them.
const fs = require('fs');
const { Parser, Language } = require('web-tree-sitter');

const words = require('./words.cjs');
const keywords = new Set(('auto bool break case char class const continue default delete do double else enum explicit export ' +
  'float for friend if import inline int long module namespace new operator private protected public register requires ' +
  'return short signed static struct switch template this typename union unsigned using virtual void while').split(' '));
// The noun for a type, where it is not the type's own name; empty: the type says nothing.
const nouns = {
  asked: 'request', ostream: 'out', istream: 'input', module_type: 'type', accelerator_policy: 'policy',
  accelerator_node: 'status', accelerator_quota: 'quota', json: 'object', ordered_json: 'object', config_map_view: 'config_map',
  any_io_executor: 'executor', wall_time: 'time', milliseconds: 'time', time_point: 'time', exceeded: 'limit',
  enabled: 'entry', counted: 'count', placed: 'place', daemon_set: 'set', error_code: 'error', function: 'callback',
  size_t: 'index', difference_type: 'index', const_iterator: 'match', iterator: 'match',
  given: '', seen: '', known: '', held: '', said: '', told: '', task: '', T: '', auto: '', char: '', bool: '', map: '' };
const lastWord = /_(options|settings|config|style|code|args|view|spec|details|transport|server|kind|accelerator|trial|object|metrics)$/;
const lists = ['span', 'vector', 'set', 'list', 'deque', 'initializer_list', 'array'];
const wrappers = ['optional', 'result', 'unique_ptr', 'shared_ptr', 'expected', 'task', 'awaitable', 'reference_wrapper'];
const singulars = { status: 'status', alias: 'alias', aliases: 'alias', classes: 'class', addresses: 'address', hashes: 'hash',
  matches: 'match', patches: 'patch', boxes: 'box', indices: 'index', all: '', known: '', rest: '' };

const children = (node) => Array.from({ length: node.childCount }, (_, i) => node.child(i));
const each = (node, visit) => { if (visit(node) !== false) children(node).forEach((child) => each(child, visit)); };
const parents = function* (node) { for (let p = node.parent; p; p = p.parent) yield p; };
const is = (node, types) => types.split(' ').includes(node.type);
const parameter = (node) => is(node, 'parameter_declaration optional_parameter_declaration');
const blocks = 'lambda_expression compound_statement for_range_loop for_statement if_statement while_statement';

function singular(word) {
  word = word.replace(/_+$/, '');
  if (word in singulars) return singulars[word];
  if (word.endsWith('ies')) return word.slice(0, -3) + 'y';
  return /[^suia]s$|[aeiou]es$/.test(word) ? word.slice(0, -1) : '';
}
const plural = (word) => /[^aeiou]y$/.test(word) ? word.slice(0, -1) + 'ies' : /(s|x|ch|sh)$/.test(word) ? word + 'es' : word + 's';

/// The declaration whose name this identifier is; null: it is a use.
function declarationOf(id) {
  let node = id;
  for (const parent of parents(id)) {
    if (parameter(parent) || is(parent, 'declaration for_range_loop'))
      return parent.childrenForFieldName('declarator').some((child) => child.id === node.id) ? parent : null;
    const declarator = is(parent, 'reference_declarator pointer_declarator attributed_declarator') ||
      (parent.type === 'init_declarator' && parent.childForFieldName('declarator')?.id === node.id);
    if (!declarator) return null;
    node = parent;
  }
  return null;
}

/// Where the name counts: a loop, a block, a function or lambda, or the prototype alone. Null: a member, or unknown.
function scopeOf(declaration) {
  if (declaration.type === 'for_range_loop') return declaration;
  for (const parent of parents(declaration)) {
    if (parameter(declaration)) {
      if (is(parent, 'lambda_expression function_definition declaration field_declaration friend_declaration')) return parent;
      if (is(parent, 'compound_statement translation_unit')) return null;
    } else {
      if (is(parent, 'compound_statement for_statement if_statement while_statement switch_statement')) return parent;
      if (is(parent, 'translation_unit declaration_list field_declaration_list')) return null;
    }
  }
  return null;
}

/// The identifiers in `scope` that mean the declaration. Throws where that is not sure.
function usesOf(id, declaration, scope) {
  const found = [];
  const redeclares = (block) => {
    let own = false;
    each(block, (node) => {
      if (node.type !== 'identifier' || node.text !== id.text || node.id === id.id) return;
      const other = declarationOf(node);
      own ||= other !== null && scopeOf(other)?.id === block.id;
    });
    return own;
  };
  const visit = (node) => {
    if (node.type === 'ERROR') throw new Error('not parsed');
    if (node.id !== scope.id && is(node, blocks) && redeclares(node)) {
      const outside = node.type === 'for_range_loop' ? node.childForFieldName('right') : node.type === 'lambda_expression' ? node.child(0) : null;
      if (outside) each(outside, (part) => { if (part.type === 'identifier' && part.text === id.text) throw new Error('both in one line'); });
      return;
    }
    const qualified = node.parent?.type === 'qualified_identifier' && node.parent.childForFieldName('name')?.id === node.id;
    if (node.type === 'identifier' && node.text === id.text && !qualified) found.push(node);
    children(node).forEach(visit);
  };
  visit(is(scope, 'declaration field_declaration friend_declaration') ? declaration.parent : scope);
  if (!found.some((node) => node.id === id.id)) throw new Error('not found');
  return found;
}

/// Names that are used in the scope, except the declaration's own type; and names declared around it.
function namesAround(declaration, scope) {
  const names = new Set(), own = declaration.childForFieldName('type');
  each(scope, (node) => {
    if (own && node.id === own.id) return false;
    if (is(node, 'identifier type_identifier namespace_identifier')) names.add(node.text);
  });
  for (const parent of parents(scope)) {
    if (is(parent, blocks) || parent.type === 'function_definition')
      each(parent, (node) => {
        if (node.id !== parent.id && is(node, blocks)) return false;
        if (node.type === 'identifier' && declarationOf(node)) names.add(node.text);
      });
    if (parent.type === 'field_declaration_list')
      each(parent, (node) => {
        if (is(node, 'compound_statement parameter_list')) return false;
        if (node.type === 'field_identifier') names.add(node.text);
      });
  }
  return names;
}

/// The last name of a type: "pod" of const kube::pod&, "plural:pod" of std::span<const kube::pod>.
function typeName(node) {
  if (!node || is(node, 'placeholder_type_specifier dependent_type')) return 'auto';
  if (node.type === 'qualified_identifier') return typeName(node.childForFieldName('name'));
  if (node.type !== 'template_type') return node.text;
  const name = node.childForFieldName('name').text;
  const first = children(node.childForFieldName('arguments')).find((child) => child.type === 'type_descriptor');
  const inner = first ? typeName(first.childForFieldName('type')) : '';
  if (lists.includes(name)) return 'plural:' + inner;
  return wrappers.includes(name) ? inner : /map$/.test(name) ? 'map' : name;
}

/// The last name of an expression: "pods" of known.pods.all().
function lastName(node) {
  if (!node) return '';
  if (is(node, 'identifier field_identifier')) return node.text;
  if (node.type === 'field_expression') return lastName(node.childForFieldName('field'));
  if (node.type === 'qualified_identifier') return lastName(node.childForFieldName('name'));
  if (is(node, 'subscript_expression pointer_expression')) return lastName(node.childForFieldName('argument'));
  if (node.type !== 'call_expression') return '';
  const callee = node.childForFieldName('function'), name = lastName(callee);
  if (callee.type === 'field_expression' && ['all', 'values', 'find', 'at', 'value', 'get'].includes(name))
    return lastName(callee.childForFieldName('argument'));
  return ['as_const', 'move'].includes(name) ? lastName(node.childForFieldName('arguments').namedChild(0)) : name;
}

function proposals(id, declaration) {
  const word = id.text, out = [], type = typeName(declaration.childForFieldName('type'));
  if (/string/.test(type)) {
    const output = /&/.test(declaration.text) && !/const|string_view/.test(declaration.text);
    if (word === 'why') out.push('reason');
    if (output && is(id, 'identifier') && ['to', 'into'].includes(word)) out.push('output');
    if (declaration.type !== 'for_range_loop') return out;
  }
  if (/^(u?int\d+_t|int|long)$/.test(type)) return word === 'at' ? ['index'] : out;
  if (declaration.type === 'for_range_loop') {
    const range = lastName(declaration.childForFieldName('right'));
    out.push(range === 'items' ? 'item' : singular(range));
  }
  if (type === 'auto' && parameter(declaration)) {  // of a lambda: the range that the algorithm walks
    const lambda = scopeOf(declaration);
    if (lambda?.parent.type === 'argument_list') out.push(singular(lastName(lambda.parent.namedChild(0))));
  }
  if (type === 'auto' && declaration.type === 'declaration') {
    const init = [...parents(id)].find((parent) => parent.type === 'init_declarator')?.childForFieldName('value');
    const name = lastName(init);
    if (init && /\bfind(_if|_if_not|_last)?\(|_bound\(/.test(init.text)) out.push(/\.find\(['"]|find_first/.test(init.text) ? 'position' : 'match');
    else out.push(singular(name), /_of$/.test(name) ? name.slice(0, -3) : '', /^(read|parse|make|get|take|list)_/.test(name) ? name.replace(/^[a-z]+_/, '') : '');
    if (word === 'at') out.push('position');
    if (word === 'why') out.push('reason');
  }
  if (type.startsWith('plural:')) {
    const inner = type.slice(7), noun = inner in nouns ? nouns[inner] : inner;
    out.push(noun && plural(noun));
  } else if (type in nouns) {
    out.push(nouns[type]);
  } else {
    out.push(lastWord.exec(type)?.[1], type);
  }
  if (declaration.type === 'for_range_loop') out.push('entry');
  return out.filter((name) => name && /^[a-z][a-z0-9_]*$/.test(name) && !words.has(name) && !keywords.has(name) && name !== 'auto');
}

/// One rename, as the places in the text and the new name; null: nothing is left that the code names.
function next(tree) {
  let edit = null;
  each(tree.rootNode, (node) => {
    if (edit) return false;
    if (node.type !== 'identifier' || !words.has(node.text)) return;
    const declaration = declarationOf(node), scope = declaration && scopeOf(declaration);
    if (!scope) return;
    try {
      const uses = usesOf(node, declaration, scope), taken = namesAround(declaration, scope);
      const name = proposals(node, declaration).find((proposal) => !taken.has(proposal));
      if (name) edit = { uses, name, old: node.text };
    } catch { /* left alone */ }
  });
  return edit;
}

(async () => {
  let files = process.argv.slice(2);
  const show = files[0] === '--show';
  if (show) files = files.slice(1);
  await Parser.init();
  const parser = new Parser();
  parser.setLanguage(await Language.load(require.resolve('tree-sitter-cpp/tree-sitter-cpp.wasm')));
  let renamed = 0;
  for (const file of files) {
    for (;;) {
      let source = fs.readFileSync(file, 'utf8');
      const tree = parser.parse(source), edit = next(tree);
      if (!edit) { tree.delete(); break; }
      const places = [...new Map(edit.uses.map((use) => [use.startIndex, use])).values()].sort((a, b) => b.startIndex - a.startIndex);
      for (const use of places) source = source.slice(0, use.startIndex) + edit.name + source.slice(use.endIndex);
      tree.delete();
      fs.writeFileSync(file, source);
      if (show) console.log(`${file}: ${edit.old} -> ${edit.name}, ${places.length} places`);
      ++renamed;
    }
  }
  console.log(`${renamed} names`);
})();

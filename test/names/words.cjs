// `out`, `before`, `after`, `all`, `none`, `other` and `now` stay: the standard library and Kubernetes use them as nouns.
module.exports = new Set(('one ones of at on in as to from by with within without into onto upon off under over via per ' +
  'between among against toward towards beside besides through than what which who whom whose how why when where ' +
  'whether that it its they them their he she we us our ours you your yours theirs told said asked given shown').split(' '));

// Addresses of views: "#/fleet", "#/node/NAME". They are in the fragment, so the server has one page.

export function read_route(hash) {
  const [view = '', argument = ''] = hash.replace(/^#\/?/, '').split('/');
  try {
    return { view, argument: decodeURIComponent(argument) };
  } catch {
    return { view, argument: '' }; // "%" without two digits
  }
}

export function route_of(view, argument) {
  return argument === undefined ? `#/${view}` : `#/${view}/${encodeURIComponent(argument)}`;
}

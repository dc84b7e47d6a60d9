// Addresses of views: "#/fleet", "#/node/NAME", "#/fleet?mode=vgpu". They are in the fragment, so the server has one
// page; what a view is set to stands there too, so that a link and a page that is loaded again show the same.

export function read_route(hash) {
  const [path, query = ''] = hash.replace(/^#\/?/, '').split('?');
  const [view = '', argument = ''] = path.split('/');
  const settings = Object.fromEntries(new URLSearchParams(query));
  try {
    return { view, argument: decodeURIComponent(argument), settings };
  } catch {
    return { view, argument: '', settings }; // "%" without two digits
  }
}

/// `settings` that are empty are left out.
export function route_of(view, argument, settings = {}) {
  const kept = Object.entries(settings).filter(([, value]) => value);
  const query = kept.length ? `?${new URLSearchParams(kept)}` : '';
  return (argument === undefined ? `#/${view}` : `#/${view}/${encodeURIComponent(argument)}`) + query;
}

/// Puts settings of the view that is shown into the address, without a step back for each.
export function keep_settings(settings) {
  const { view, argument } = read_route(location.hash);
  history.replaceState(null, '', route_of(view, argument || undefined, settings));
}

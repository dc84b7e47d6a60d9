// What people chose for this browser: language and theme. Nothing of the cluster and no token is kept here.

export function read_setting(name, allowed) {
  try {
    const value = localStorage.getItem(`quartermaster.${name}`);
    return allowed.includes(value) ? value : null;
  } catch {
    return null; // storage is switched off
  }
}

export function write_setting(name, value) {
  try {
    localStorage.setItem(`quartermaster.${name}`, value);
  } catch {
    // It then lasts as long as the page.
  }
}

// Light or dark: what the browser prefers, unless someone chose.
import { read_setting, write_setting } from './settings.js';

export const themes = ['auto', 'light', 'dark'];


let current = read_setting('theme', themes) ?? 'auto';
export const current_theme = () => current;

export function apply_theme() {
  document.documentElement.dataset.theme = current;
}

export function set_theme(name) {
  current = name;
  write_setting('theme', name);
  apply_theme();
}

/// The colour that a custom property has now, for canvas, which knows no custom properties.
export function color_of(property) {
  const probe = document.createElement('span');
  probe.style.color = `var(${property})`;
  document.body.append(probe);
  const { color } = getComputedStyle(probe);
  probe.remove();
  return color;
}

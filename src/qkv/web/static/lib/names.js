// Names with an index, as u_b, set as people write them.
import { html } from "../vendor/htm-preact.js";

/** A sentence in which every x_1 has its index set low. */
export function lowered(text) {
  return text.split(/\b([A-Za-z]_[A-Za-z0-9]+)\b/).map((part, i) => (i % 2 ? html`${part[0]}<sub>${part.slice(2)}</sub>` : part));
}

/** A sentence of the library, as the page begins one. */
export function capital(text) {
  return text.slice(0, 1).toUpperCase() + text.slice(1);
}

/** The same for a label in a picture. */
export function loweredText(name) {
  const found = /^([A-Za-z])_([A-Za-z0-9]+)$/.exec(name);
  return found ? html`${found[1]}<tspan dy="3" font-size="10">${found[2]}</tspan>` : name;
}

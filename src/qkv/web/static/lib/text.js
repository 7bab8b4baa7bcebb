// Text: subscripts in names such as u_b, and capital letters.
import { html } from "./html.js";

/** A sentence in which the index of every name such as x_1 is a subscript, and what stands in backticks is code. */
export function subscripts(text) {
  return text.split(/`([^`]+)`/).map((part, i) => (i % 2 ? html`<code>${part}</code>` : indices(part)));
}

function indices(text) {
  return text.split(/\b([A-Za-z]_[A-Za-z0-9]+)\b/).map((part, i) => (i % 2 ? html`${part[0]}<sub>${part.slice(2)}</sub>` : part));
}

/** A text with a capital first letter. */
export function capitalise(text) {
  return text.slice(0, 1).toUpperCase() + text.slice(1);
}

/** A text as the end of a sentence, as `with_full_stop` of qkv.errors: a full stop is added, unless it ends like a sentence already. */
export function withFullStop(text) {
  return /[.?!…]$/.test(text) ? text : `${text}.`;
}

/** A name with its index as a subscript, as SVG. */
export function svgSubscripts(name) {
  const found = /^([A-Za-z])_([A-Za-z0-9]+)$/.exec(name);
  return found ? html`${found[1]}<tspan dy="3" font-size="10">${found[2]}</tspan>` : name;
}

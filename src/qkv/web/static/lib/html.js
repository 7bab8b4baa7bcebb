// Preact and htm, with one rule for text: no line break divides a number.
import { h, html as element } from "../vendor/htm-preact.js";

export * from "../vendor/htm-preact.js";

// Browsers break lines behind the hyphen of 3.5e-05, and at the spaces of 94 %, 5 s, < 0.01 and 1 − 3.5e-05. `number_spans` of qkv.core.display has the same rule.
const NUMBER = /((?:[<>≤≥±≈] )?(?:1 − )?\d+(?:[.,]\d+)*(?:e[-+]?\d+)?(?: (?:%|m?s\b|[kMG]B\b))?)/;
const DIVISIBLE = /e-| /;
const TEXT_ONLY = new Set(["text", "tspan", "title", "option", "textarea"]); // no elements may stand in them
const done = new WeakSet();

/** htm's tagged template: elements in whose text numbers are kept whole. */
export function html(...template) {
  const made = element(...template);
  for (const one of [made].flat()) keep(one);
  return made;
}

/** Keeps the numbers in the text of an element and of those in it; components and their children are left to the elements that they return. */
function keep(vnode) {
  if (!vnode?.props || done.has(vnode)) return;
  done.add(vnode);
  const plain = typeof vnode.type !== "string" || TEXT_ONLY.has(vnode.type);
  const walk = (child) => {
    if (Array.isArray(child)) return child.map(walk);
    if (typeof child === "string") return plain ? child : whole(child);
    keep(child);
    return child;
  };
  if (vnode.props.children !== undefined) vnode.props.children = walk(vnode.props.children);
}

/** A text with its numbers in elements that have no line breaks; a text without such numbers as it is. */
function whole(text) {
  if (!DIVISIBLE.test(text)) return text;
  const parts = text.split(NUMBER);
  if (!parts.some((part, i) => i % 2 && DIVISIBLE.test(part))) return text;
  return parts.map((part, i) => (i % 2 && DIVISIBLE.test(part) ? h("span", { class: "whole" }, part) : part));
}

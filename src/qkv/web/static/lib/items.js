// Items: colours (the first is orange, the second blue, all others grey), labels and initial keys.

/** The colour of item i, as a custom property of theme.css. */
export function itemColour(i) {
  return i === 0 ? "var(--item-a)" : i === 1 ? "var(--item-b)" : "var(--item-other)";
}

/** The same colours as values, so that the output of attention is shown as a mixture of colours. */
const VALUES = [[230, 159, 0], [0, 114, 178], [154, 154, 158]];
export function valueOf(i) {
  return VALUES[Math.min(i, 2)].map((c) => Number((c / 255).toFixed(3)));
}

/** A value in [0, 1]³ as a colour. */
export function colour(value) {
  return `rgb(${value.map((c) => Math.round(255 * Math.min(Math.max(c, 0), 1))).join(" ")})`;
}

/** a, b, …, z, then a1, b1, … */
export function labelOf(i) {
  return String.fromCharCode(97 + (i % 26)) + (i < 26 ? "" : Math.floor(i / 26));
}

/** A seeded generator of standard normal numbers. */
function normals(seed) {
  let s = seed >>> 0;
  const uniform = () => {
    s = (s + 0x6d2b79f5) >>> 0;
    let t = Math.imul(s ^ (s >>> 15), 1 | s);
    t = (t + Math.imul(t ^ (t >>> 7), 61 | t)) ^ t;
    return ((t ^ (t >>> 14)) >>> 0) / 4294967296;
  };
  return () => Math.sqrt(-2 * Math.log(1 - uniform())) * Math.cos(2 * Math.PI * uniform());
}

export const KEY_LAYOUTS = [["ring", "On a ring"], ["inside", "One inside"], ["crowd", "Random"]];

/** Initial keys: all vertices of their hull, the first one inside it, or random. */
export function initialKeys(kind, n) {
  const random = normals(n * 7 + 3);
  return Array.from({ length: n }, (_, i) => {
    if (kind === "crowd") return [round(1.1 * random()), round(1.1 * random())];
    if (kind === "inside" && i === 0) return [0.35, 0.2];
    const many = kind === "inside" ? n - 1 : n, place = kind === "inside" ? i - 1 : i;
    const angle = (2 * Math.PI * (place + 0.5 + 0.18 * Math.sin(5 * place + 1))) / many;
    return [round(1.75 * Math.cos(angle)), round(1.75 * Math.sin(angle))];
  });
}

export function round(x, digits = 3) {
  return Number(x.toFixed(digits));
}

/** The corners of the hull of points in the plane, in order, for drawing. */
export function hull(points) {
  const sorted = [...points].sort((p, q) => p[0] - q[0] || p[1] - q[1]);
  const chain = (list) => {
    const out = [];
    for (const p of list) {
      while (out.length > 1 && turn(out.at(-2), out.at(-1), p) <= 0) out.pop();
      out.push(p);
    }
    return out.slice(0, -1);
  };
  return sorted.length < 3 ? sorted : [...chain(sorted), ...chain(sorted.reverse())];
}

function turn(o, p, q) {
  return (p[0] - o[0]) * (q[1] - o[1]) - (p[1] - o[1]) * (q[0] - o[0]);
}

// Items: a colour for every one (Okabe and Ito's first, then darker and lighter ones), labels and initial keys.

// Okabe and Ito's colours, which colour-blind eyes tell apart; the first two are item-a and item-b of theme.css.
const PALETTE = [[230, 159, 0], [0, 114, 178], [0, 158, 115], [213, 94, 0], [204, 121, 167], [86, 180, 233], [240, 228, 66]];
// From the eighth item on the palette repeats, mixed with so much of black (below 0) or white.
const SHADES = [0, -0.38, 0.45, -0.6, 0.62, -0.2, 0.25, -0.72];

function rgbOf(i) {
  const shade = SHADES[Math.floor(i / PALETTE.length) % SHADES.length], ground = shade < 0 ? 0 : 255;
  return PALETTE[i % PALETTE.length].map((c) => Math.round(c + Math.abs(shade) * (ground - c)));
}

/** The colour of item i. */
export function itemColour(i) {
  return `rgb(${rgbOf(i).join(" ")})`;
}

/** The same colour as a value in [0, 1]³, so that the output of attention is shown as a mixture of colours. */
export function valueOf(i) {
  return rgbOf(i).map((c) => Number((c / 255).toFixed(3)));
}

/** Black or white, whichever is easier to read on a colour in [0, 1]³: the one with the higher contrast of WCAG. */
export function inkOn(value) {
  const [r, g, b] = value.map((c) => (c <= 0.04045 ? c / 12.92 : ((c + 0.055) / 1.055) ** 2.4));
  return 0.2126 * r + 0.7152 * g + 0.0722 * b > 0.179 ? "#1c1c1e" : "#fff";
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
export function normals(seed) {
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

// Parses sums of named vectors: "u_b - u_c", "2 u_a + 1/2 u_d".
import { readNumber } from "./controls.js";

const TERM = /^([-+−]?)\s*(\d*\.?\d*(?:\/\d+)?(?:e[-+]?\d+)?)\s*[*·]?\s*([A-Za-z][A-Za-z0-9_]{0,39})\s*/;

/** Coefficients by name, or null if the text is not a sum. */
export function readSum(text) {
  let rest = text.trim();
  const found = {};
  while (rest) {
    const term = TERM.exec(rest);
    if (!term || (Object.keys(found).length && !term[1])) return null;
    const size = term[2] === "" ? 1 : readNumber(term[2]);
    if (!Number.isFinite(size)) return null;
    found[term[3]] = (found[term[3]] ?? 0) + (term[1] && term[1] !== "+" ? -size : size);
    rest = rest.slice(term[0].length);
  }
  return Object.keys(found).length ? found : null;
}

/** What a rule reads: one token's name, or weights by name. */
export function readReads(text) {
  const sum = readSum(text);
  if (!sum) return null;
  const names = Object.keys(sum);
  return names.length === 1 && sum[names[0]] === 1 ? names[0] : sum;
}

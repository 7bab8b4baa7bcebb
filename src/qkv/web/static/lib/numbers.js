// Numbers as text, formatted like the library's terminal output.

/** C's %.{digits}g for ordinary sizes, a whole number for larger ones, an exponent for others. */
export function number(x, digits = 4) {
  if (typeof x === "string") return x; // "inf", "nan": JSON has no such numbers
  if (x === null || x === undefined) return "–";
  if (x === 0 || !Number.isFinite(x)) return Object.is(x, -0) ? "0" : String(x).replace("Infinity", "inf").replace("NaN", "nan");
  const usual = Math.abs(x) >= 1e-4 && Math.abs(x) < 1e6;
  if (usual && Math.abs(x) >= 10 ** digits - 0.5) return x.toFixed(0);
  const text = usual ? x.toPrecision(digits) : x.toExponential(digits - 1);
  const [mantissa, exponent] = text.split("e");
  const short = usual && mantissa.includes(".") ? mantissa.replace(/\.?0+$/, "") : mantissa;
  return exponent === undefined ? short : `${short}e${exponent[0]}${exponent.slice(1).padStart(2, "0")}`;
}

/** A number as a user would type it. */
export function typed(x) {
  const text = String(Number(x.toPrecision(6)));
  return x !== 0 && Math.abs(x) < 1e-3 ? Number(x.toPrecision(6)).toExponential() : text;
}

/** A weight or probability with three decimals; never 0 or 1 by rounding. */
export function share(x) {
  if (typeof x !== "number") return number(x);
  if (x > 0 && x < 0.0005) return number(x, 2);
  if (x < 1 && x > 0.9995) return `1 − ${number(1 - x, 2)}`;
  return x.toFixed(3);
}

/** A share in percent, all or nothing only where it is: 0.998 is 99.8 %, and 1 is 100 %. */
export function percentage(x) {
  if (x === null || x === undefined) return "–";
  const near = (x > 0 && x < 0.005) || (x >= 0.995 && x < 1);
  if (!near) return `${Math.round(100 * x)} %`;
  return x < 0.001 ? "< 0.1 %" : x > 0.999 ? "> 99.9 %" : `${(100 * x).toFixed(1)} %`;
}

/** A share that was proved, in whole percent: never more than was proved; 100 · 0.29 is 29, not 28.999999999999996. */
export const provedPercentage = (x) => `${Math.floor(100 * x + 1e-9)} %`;

/** A vector in one line; of a long one, the first entries. */
export function vector(values, maxEntries = 6) {
  const shown = values.slice(0, maxEntries).map((v) => number(v, 3)).join(", ");
  return `(${shown}${values.length > maxEntries ? `, … ${values.length - maxEntries} more` : ""})`;
}

/** An upper bound as text: as `number`, but never below x. */
export function atMost(x, digits = 4) {
  const text = number(x, digits);
  if (typeof x !== "number" || !Number.isFinite(x) || Number(text) >= x) return text;
  const unit = 10 ** (Math.floor(Math.log10(Math.abs(x))) - digits + 1);
  const raised = number(x + 0.6 * unit, digits);
  return Number(raised) >= x ? raised : number(x + unit, digits);
}

/** A lower bound as text: as `number`, but never above x. */
export function atLeast(x, digits = 4) {
  const text = number(x, digits);
  if (typeof x !== "number" || !Number.isFinite(x) || Number(text) <= x) return text;
  const unit = 10 ** (Math.floor(Math.log10(Math.abs(x))) - digits + 1);
  const lowered = number(x - 0.6 * unit, digits);
  return Number(lowered) <= x ? lowered : number(x - unit, digits);
}

/** Names as "a", "a and b" or "a, b and c". */
export function listed(names) {
  return names.length < 2 ? names.join("") : `${names.slice(0, -1).join(", ")} and ${names.at(-1)}`;
}

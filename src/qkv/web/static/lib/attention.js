// Attention in the page, for the picture of Home: scores, weights, output, and readings under noise on the keys.

/** Scores, weights and output of a query over keys and values; the largest score is subtracted before exp, which changes no weight. */
export function read({ keys, values }, query, scale) {
  const scores = keys.map((key) => scale * dot(key, query));
  const top = Math.max(...scores);
  const parts = scores.map((s) => Math.exp(s - top)), sum = parts.reduce((a, b) => a + b, 0);
  const weights = parts.map((p) => p / sum);
  const output = values[0].map((_, axis) => weights.reduce((total, w, i) => total + w * values[i][axis], 0));
  return { scores, weights, output };
}

export function dot(p, q) {
  return p.reduce((sum, c, axis) => sum + c * q[axis], 0);
}

/** Draws of one item's weight: each entry of `draws` holds one standard normal vector per key, which moves it by `sd` times that. */
export function weightDraws({ keys, values }, query, scale, item, sd, draws) {
  return draws.map((moves) => read({ keys: keys.map((key, i) => key.map((c, axis) => c + sd * moves[i][axis])), values }, query, scale).weights[item]);
}

// Attention of one head: tokens that look on the left, tokens that are looked at on the right, arcs between them.
import { html, useEffect, useMemo, useRef, useState } from "./html.js";
import { useWidth } from "./chart.js";

const ROW = 19, TOP = 6, LEVELS = 8;
const MOST_ARCS = 12, LEAST_WEIGHT = 0.02; // of one token: the largest weights, from this on
const LETTER = 7, MAX_COLUMN = 150;

/** Bytes that the server sent in base64. */
export function bytesOf(text) {
  const letters = atob(text), bytes = new Uint8Array(letters.length);
  for (let i = 0; i < letters.length; i++) bytes[i] = letters.charCodeAt(i);
  return bytes;
}

/** Numbers that the server sent as float32 in base64. */
export function decoded(text) {
  return new Float32Array(bytesOf(text).buffer);
}

/** A weight with three decimals; "< 0.001" for less, and never 1 by rounding. */
export function weightText(w) {
  if (w > 0 && w < 0.0005) return "< 0.001";
  return w > 0.9995 && w < 1 ? `1 − ${(1 - w).toExponential(0)}` : w.toFixed(3);
}

/** A token as a reader sees it: spaces around it are left out, and what cannot be seen is written out. */
export function tokenText(token) {
  const bare = token.trim();
  return bare && !/[\u0000-\u001f\u007f\ufffd]/.test(bare) ? bare : JSON.stringify(token).slice(1, -1).replace(/ /g, "␣") || "∅";
}

/** The largest weights of a row, or with `column` of a column, as [place, weight], from `least` on. */
export function strongest(weights, n, i, { column = false, most = MOST_ARCS, least = LEAST_WEIGHT } = {}) {
  const found = [];
  for (let j = 0; j < n; j++) {
    const w = column ? weights[j * n + i] : weights[i * n + j];
    if (w >= least) found.push([j, w]);
  }
  return found.sort((a, b) => b[1] - a[1]).slice(0, most);
}

const y = (i) => TOP + ROW * i + ROW / 2;

/** Arcs of all tokens as one path for each degree of darkness, so that a long text is drawn at once. */
function levelsOf(weights, n, left, right) {
  const middle = (left + right) / 2, paths = Array.from({ length: LEVELS }, () => []);
  for (let i = 0; i < n; i++) {
    for (const [j, w] of strongest(weights, n, i)) {
      paths[Math.min(LEVELS - 1, Math.floor(LEVELS * w))].push(`M${left} ${y(i)}C${middle} ${y(i)} ${middle} ${y(j)} ${right} ${y(j)}`);
    }
  }
  return paths.map((parts) => parts.join(""));
}

/**
 * The arcs. `token` is the chosen token, whose arcs stand out; `onToken` is called with a token that is clicked. Under
 * the pointer, a token on the left shows what it looks at, one on the right which tokens look at it.
 */
export function Arcs({ tokens, weights, token, onToken, label }) {
  const frame = useRef(null), width = useWidth(frame), n = tokens.length;
  const [over, setOver] = useState(null); // { side, place } under the pointer
  const words = useMemo(() => tokens.map(tokenText), [tokens]);
  const wide = Math.min(620, width), column = Math.min(MAX_COLUMN, wide * 0.34, 8 + LETTER * Math.max(...words.map((w) => w.length)));
  const left = column + 6, right = wide - column - 6, height = TOP * 2 + ROW * n;
  const fitting = (word) => { const room = Math.floor(column / LETTER); return word.length > room ? `${word.slice(0, Math.max(1, room - 1))}…` : word; };
  // What does not depend on the chosen token is drawn once; Preact leaves an element alone that is the same object.
  const ground = useMemo(() => width > 0 && html`<g>
    ${levelsOf(weights, n, left, right).map((d, k) => d && html`<path class="arc" d=${d} stroke-opacity=${(0.1 + (0.55 * (k + 1)) / LEVELS).toFixed(2)} />`)}
    ${words.map((word, i) => html`<text class="word" x=${left - 8} y=${y(i) + 4} text-anchor="end">${fitting(word)}</text>`)}
    ${words.map((word, i) => html`<text class="word" x=${right + 8} y=${y(i) + 4}>${fitting(word)}</text>`)}
  </g>`, [tokens, weights, width]);
  const at = (event) => {
    const box = event.currentTarget.getBoundingClientRect(), scale = wide / box.width;
    const place = Math.floor(((event.clientY - box.top) * scale - TOP) / ROW);
    return place >= 0 && place < n ? { side: (event.clientX - box.left) * scale > wide / 2 ? "seen" : "looks", place } : null;
  };
  const move = (event) => {
    const found = at(event);
    if (found?.place !== over?.place || found?.side !== over?.side) setOver(found);
  };
  useEffect(() => { // keep the chosen token in view, without moving the page
    const box = frame.current;
    if (!box || box.scrollHeight <= box.clientHeight) return;
    const top = y(token) - ROW, low = box.scrollTop, high = low + box.clientHeight - 3 * ROW;
    if (top < low || top > high) box.scrollTop = Math.max(0, top - box.clientHeight / 2);
  }, [token, n, width]);
  const shown = over ?? { side: "looks", place: Math.min(token, n - 1) };
  return html`<div class="arcs" ref=${frame} tabindex="0" role="region" aria-label="Tokens and arcs">
    ${width > 0 && html`<svg width=${wide} height=${height} viewBox=${`0 0 ${wide} ${height}`} role="img" aria-label=${label}
      onPointerMove=${(e) => e.pointerType === "mouse" && move(e)} onPointerLeave=${() => setOver(null)}
      onClick=${(e) => { const found = at(e); if (found) { onToken(found.place); setOver(null); } }}>
      ${ground}<${Chosen} ...${{ shown, words, weights, n, left, right, fitting }} />
    </svg>`}
  </div>`;
}

/** The arcs of one token, in front of all others, with its weights. */
function Chosen({ shown: { side, place }, words, weights, n, left, right, fitting }) {
  const looks = side === "looks", middle = (left + right) / 2;
  const pairs = strongest(weights, n, place, { column: !looks });
  const from = (j) => (looks ? place : j), to = (j) => (looks ? j : place);
  return html`<g class="front" data-shown=${place}>
    <rect class="veil" x=${left} y="0" width=${right - left} height=${2 * TOP + ROW * n} />
    ${pairs.map(([j, w]) => html`<path class="own" d=${`M${left} ${y(from(j))}C${middle} ${y(from(j))} ${middle} ${y(to(j))} ${right} ${y(to(j))}`} stroke-width=${(0.75 + 3.5 * w).toFixed(2)} stroke-opacity=${(0.35 + 0.65 * w).toFixed(2)} />`)}
    <rect class="back" x=${looks ? 0 : right + 4} y=${y(place) - ROW / 2} width=${left - 4} height=${ROW} />
    <text class="strong" x=${looks ? left - 8 : right + 8} y=${y(place) + 4} text-anchor=${looks ? "end" : "start"}>${fitting(words[place])}</text>
    ${pairs.map(([j, w]) => html`<rect class="paper" x=${looks ? right + 4 : 0} y=${y(j) - ROW / 2} width=${left - 4} height=${ROW} />
      <rect class="back" x=${looks ? right + 4 : 0} y=${y(j) - ROW / 2} width=${left - 4} height=${ROW} fill-opacity=${w} />
      <text class="strong" x=${looks ? right + 8 : left - 8} y=${y(j) + 4} text-anchor=${looks ? "start" : "end"}>${fitting(words[j])}</text>`)}
  </g>`;
}

/** Tokens as parts of a text: where none brings its own spaces, as in BERT, words are set apart by one. */
export function spaced(tokens) {
  if (tokens.some((token, i) => i && /^\s/.test(token)) || tokens.every((token) => [...token].length <= 1)) return tokens;
  return tokens.map((token, i) => (token.startsWith("##") ? token.slice(2) : i && !/^[.,;:!?)\]’']$/.test(token) ? ` ${token}` : token));
}

/** The text as it reads, each token as dark as the weight that the chosen token gives it. */
export function ShadedText({ tokens, weights, token, onToken }) {
  const n = tokens.length;
  const parts = useMemo(() => spaced(tokens), [tokens]);
  const shades = useMemo(() => tokens.map((_, j) => weights[Math.min(token, n - 1) * n + j]), [weights, token]);
  return html`<p class="shaded" onClick=${(e) => { const place = e.target.dataset?.place; if (place !== undefined) onToken(Number(place)); }}>
    ${parts.map((part, j) => html`${/^ ./.test(part) ? " " : ""}<span key=${j} data-place=${j} class=${j === token ? "from" : ""} style=${{ "--weight": shades[j] > 0.005 ? shades[j].toFixed(3) : 0 }}
      title=${`${j} ${tokenText(tokens[j])}: ${weightText(shades[j])}`}>${part.trim() ? part.replace(/^ /, "") : part || "∅"}</span>`)}</p>`;
}

// Keys in the plane with their convex hull, and the query as an arrow; both can be dragged or moved by arrow keys.
import { html, useRef } from "./html.js";
import { hull, itemColour, round } from "./items.js";
import { number, share } from "./numbers.js";
import { useWidth } from "./chart.js";

const ARROWS = { ArrowLeft: [-1, 0], ArrowRight: [1, 0], ArrowUp: [0, 1], ArrowDown: [0, -1] };
const MAX_LABELLED_KEYS = 12; // up to so many keys are all labelled and reachable by Tab
const MAX_NAMED = 8; // of more keys, so many are labelled beside the wanted ones: those with most weight

/**
 * `keys`, `weights` and `labels` by item; `query` in the same plane; `wanted` holds indices. `proof`, where no query
 * exists, is { at, parts: [[index, weight], …] }: a point that is the average of those keys. `extent` is half the width
 * of the plane that is shown.
 */
export function KeySpace({ keys, labels, weights, query, wanted, proof, extent, onQuery, onKey, onToggle }) {
  const frame = useRef(null);
  const size = Math.min(useWidth(frame) || 360, 520);
  const middle = size / 2, unit = (middle - 26) / extent;
  const x = (p) => middle + unit * p[0], y = (p) => middle - unit * p[1];
  const top = highestScoring(keys, query);

  const drag = (move) => (event) => {
    if (event.button) return;
    event.preventDefault();
    event.currentTarget.focus();
    const target = event.currentTarget, box = frame.current.querySelector("svg").getBoundingClientRect();
    target.setPointerCapture(event.pointerId);
    let moved = false;
    const place = (e) => {
      if (!moved && Math.hypot(e.clientX - event.clientX, e.clientY - event.clientY) < 3) return;
      moved = true;
      const factor = size / box.width;
      move([(factor * (e.clientX - box.left) - middle) / unit, (middle - factor * (e.clientY - box.top)) / unit].map((c) => round(Math.max(-extent, Math.min(extent, c)))));
    };
    const done = () => {
      target.removeEventListener("pointermove", place);
      target.removeEventListener("pointerup", done);
      target.removeEventListener("pointercancel", done);
      if (!moved) move(null);
    };
    target.addEventListener("pointermove", place);
    target.addEventListener("pointerup", done);
    target.addEventListener("pointercancel", done);
  };
  // Browsers ignore touch-action on parts of an SVG: without this, a vertical drag would scroll the page.
  const hold = (event) => event.preventDefault();
  const step = (from, move) => (event) => {
    const way = ARROWS[event.key];
    if (!way) return;
    event.preventDefault();
    const far = (event.shiftKey ? 0.5 : 0.05) * (extent / 2.4);
    move(from.map((c, i) => round(Math.max(-extent, Math.min(extent, c + far * way[i])))));
  };

  const corners = hull(keys);
  const few = keys.length <= MAX_LABELLED_KEYS;
  const heaviest = few ? [] : keys.map((_, i) => i).sort((i, j) => (weights?.[j] ?? 0) - (weights?.[i] ?? 0)).slice(0, MAX_NAMED);
  const named = (i) => few || wanted.includes(i) || heaviest.includes(i);
  return html`<div class="keyspace" ref=${frame}>
    <svg width=${size} height=${size} viewBox=${`0 0 ${size} ${size}`} role="group" aria-label="Key space: keys and the query">
      <line class="axis" x1="0" x2=${size} y1=${middle} y2=${middle} /><line class="axis" y1="0" y2=${size} x1=${middle} x2=${middle} />
      <polygon class="hull" points=${corners.map((p) => `${x(p)},${y(p)}`).join(" ")} />
      ${proof && html`<${Proof} proof=${proof} keys=${keys} wanted=${wanted} x=${x} y=${y} />`}
      ${!proof && top !== null && html`<${ScoreLine} key_=${keys[top]} query=${query} x=${x} y=${y} size=${size} />`}
      <line class="query" x1=${middle} y1=${middle} x2=${x(query)} y2=${y(query)} />
      ${keys.map((key, i) => html`
        <g class=${`key${wanted.includes(i) ? " wanted" : ""}`} key=${i} tabindex=${few ? 0 : -1} role="checkbox" aria-checked=${wanted.includes(i)}
          aria-label=${`key ${labels[i]} at ${number(key[0], 3)}, ${number(key[1], 3)}${weights ? `, weight ${share(weights[i])}` : ""}`}
          onTouchStart=${hold} onPointerDown=${drag((p) => (p ? onKey(i, p) : onToggle(i)))}
          onKeyDown=${(e) => (e.key === " " || e.key === "Enter" ? (e.preventDefault(), onToggle(i)) : step(key, (p) => onKey(i, p))(e))}>
          <circle class="reach" cx=${x(key)} cy=${y(key)} r="14" />
          ${wanted.includes(i) && html`<circle class="ring" cx=${x(key)} cy=${y(key)} r=${radius(weights?.[i]) + 4} stroke=${itemColour(i)} />`}
          <circle class="spot" cx=${x(key)} cy=${y(key)} r=${radius(weights?.[i])} fill=${itemColour(i)} />
          ${named(i) && html`<text x=${x(key) + outward(key)[0] * (radius(weights?.[i]) + 13)} y=${y(key) - outward(key)[1] * (radius(weights?.[i]) + 13)}>${labels[i]}</text>`}
        </g>`)}
      <g class="handle" tabindex="0" role="slider" aria-label="query" aria-valuenow=${round(query[0])} aria-valuetext=${`query at ${number(query[0], 3)}, ${number(query[1], 3)}`}
        onTouchStart=${hold} onPointerDown=${drag((p) => p && onQuery(p))} onKeyDown=${step(query, onQuery)}>
        <circle class="reach" cx=${x(query)} cy=${y(query)} r="18" />
        <rect x=${x(query) - 6} y=${y(query) - 6} width="12" height="12" transform=${`rotate(45 ${x(query)} ${y(query)})`} />
        <text x=${x(query) + outward(query)[0] * 20} y=${y(query) - outward(query)[1] * 20}>q</text>
      </g>
    </svg></div>`;
}

function highestScoring(keys, query) {
  let best = null;
  keys.forEach((k, i) => { if (best === null || dot(k, query) > dot(keys[best], query)) best = i; });
  return best !== null && Math.hypot(...query) > 1e-9 ? best : null;
}

function dot(p, q) {
  return p[0] * q[0] + p[1] * q[1];
}

function radius(weight) {
  return 4 + 11 * Math.sqrt(Math.max(0, weight ?? 0));
}

function outward(p) {
  const length = Math.hypot(...p);
  return length < 1e-6 ? [0.7, 0.7] : [p[0] / length, p[1] / length];
}

/** The line of equal scores through the key with the highest score: every other key lies behind it. */
function ScoreLine({ key_, query, x, y, size }) {
  const length = Math.hypot(...query), along = [-query[1] / length, query[0] / length];
  const ends = [-1, 1].map((s) => [key_[0] + s * size * along[0], key_[1] + s * size * along[1]]);
  return html`<line class="front" x1=${x(ends[0])} y1=${y(ends[0])} x2=${x(ends[1])} y2=${y(ends[1])} />`;
}

/** Why no query exists: a key is an average of others, and an average never scores above the best of them. */
function Proof({ proof, keys, wanted, x, y }) {
  const own = proof.at;
  const corners = hull(proof.parts.map(([i]) => keys[i]));
  const [p, q] = wanted.length === 2 ? wanted.map((i) => keys[i]) : [own, own];
  return html`<g class="proof">
    <line x1=${x(p)} y1=${y(p)} x2=${x(q)} y2=${y(q)} class="through" />
    <polygon points=${corners.map((p) => `${x(p)},${y(p)}`).join(" ")} />
    ${proof.parts.map(([i, part]) => {
      const at = [0.42 * own[0] + 0.58 * keys[i][0], 0.42 * own[1] + 0.58 * keys[i][1]];
      return html`<line x1=${x(own)} y1=${y(own)} x2=${x(keys[i])} y2=${y(keys[i])} />
        <text class="part" x=${x(at)} y=${y(at)}>${share(part)}</text>`;
    })}
    <circle cx=${x(own)} cy=${y(own)} r="3.5" />
  </g>`;
}

// The picture of Home: query and keys in the plane, weights, output, and one weight under noise.
import { html, useRef } from "../lib/html.js";
import { colour, inkOn, itemColour } from "../lib/items.js";
import { share } from "../lib/numbers.js";
import { useWidth } from "../lib/chart.js";

const EXTENT = 1.36; // half the width of the plane that is shown
const STEP = Math.PI / 36; // of an arrow key
const NARROW = 480; // below this width the parts stand under each other

/** `memory` has keys, values and labels; `drawn` are draws of the weight of item `top` under noise. Dragging the query calls `onQuery`. */
export function LookupPicture({ memory, query, weights, output, drawn, top, onQuery }) {
  const frame = useRef(null);
  const width = useWidth(frame);
  const wide = width >= NARROW, plane = wide ? Math.min(300, Math.floor(0.46 * width)) : Math.min(230, width);
  const column = wide ? width - plane - 28 : width;
  return html`<div class=${`lookup-picture${wide ? " wide" : ""}`} ref=${frame}>${width > 0 && html`
    <${Plane} size=${plane} ...${{ memory, query, weights, onQuery }} />
    <${Reading} width=${column} ...${{ memory, weights, output, drawn, top }} />`}</div>`;
}

function Plane({ size, memory, query, weights, onQuery }) {
  const middle = size / 2, unit = middle / EXTENT;
  const x = (p) => middle + unit * p[0], y = (p) => middle - unit * p[1];
  const angle = Math.atan2(query[1], query[0]);
  const turn = (to) => onQuery([Math.cos(to), Math.sin(to)]);
  const drag = (event) => {
    event.preventDefault();
    const target = event.currentTarget, box = target.ownerSVGElement.getBoundingClientRect();
    target.focus();
    target.setPointerCapture(event.pointerId);
    const move = (e) => turn(Math.atan2(box.top + box.height / 2 - e.clientY, e.clientX - box.left - box.width / 2));
    const done = () => { target.removeEventListener("pointermove", move); target.removeEventListener("pointerup", done); target.removeEventListener("pointercancel", done); };
    target.addEventListener("pointermove", move);
    target.addEventListener("pointerup", done);
    target.addEventListener("pointercancel", done);
  };
  const press = (event) => {
    const way = { ArrowLeft: 1, ArrowUp: 1, ArrowRight: -1, ArrowDown: -1 }[event.key];
    if (!way) return;
    event.preventDefault();
    turn(angle + way * STEP);
  };
  const degrees = Math.round((angle * 180) / Math.PI);
  return html`<div class="keyspace"><svg width=${size} height=${size} role="group" aria-label="Five keys and the query">
    <line class="axis" x1="0" x2=${size} y1=${middle} y2=${middle} /><line class="axis" y1="0" y2=${size} x1=${middle} x2=${middle} />
    ${memory.keys.map((key, i) => html`<line key=${`ray${i}`} class="ray" x1=${x(query)} y1=${y(query)} x2=${x(key)} y2=${y(key)} stroke=${itemColour(i)} stroke-width=${9 * weights[i]} />`)}
    <line class="query" x1=${middle} y1=${middle} x2=${x(query)} y2=${y(query)} />
    ${memory.keys.map((key, i) => html`<circle key=${`key${i}`} cx=${x(key)} cy=${y(key)} r=${5 + 11 * Math.sqrt(weights[i])} fill=${itemColour(i)} />
      <text class="name" x=${x(key)} y=${y(key)} style=${{ fill: inkOn(memory.values[i]) }} visibility=${weights[i] > 0.1 ? "visible" : "hidden"}>${memory.labels[i]}</text>
      <text x=${x([1.22 * key[0], 0])} y=${y([0, 1.22 * key[1]])} visibility=${weights[i] > 0.1 ? "hidden" : "visible"}>${memory.labels[i]}</text>`)}
    <g class="handle" tabindex="0" role="slider" aria-label="Direction of the query" aria-valuemin="-180" aria-valuemax="180" aria-valuenow=${degrees}
      aria-valuetext=${`${degrees} degrees`} onPointerDown=${drag} onTouchStart=${(e) => e.preventDefault()} onKeyDown=${press}>
      <circle class="reach" cx=${x(query)} cy=${y(query)} r="20" />
      <rect x=${x(query) - 6} y=${y(query) - 6} width="12" height="12" transform=${`rotate(45 ${x(query)} ${y(query)})`} />
      <text x=${x([0.72 * query[0] - 0.1 * query[1], 0])} y=${y([0, 0.72 * query[1] + 0.1 * query[0]])}>q</text>
    </g>
  </svg></div>`;
}

/** Weights as bars, the output as a mixture, and a dot per reading under noise. */
function Reading({ width, memory, weights, output, drawn, top }) {
  const row = 22, left = 20, right = 62, room = Math.max(width - left - right, 20);
  const bars = row * weights.length + 20, mixture = bars + 30, strip = mixture + 64;
  const at = (w) => left + room * w;
  let from = left;
  const described = `Weights: ${memory.labels.map((label, i) => `${label} ${share(weights[i])}`).join(", ")}`;
  return html`<div class="bars"><svg width=${width} height=${strip + 44} role="img" aria-label=${described}>
    <text class="step" x="0" y="12">weights</text>
    ${weights.map((w, i) => html`<g key=${i} transform=${`translate(0 ${20 + row * i})`}>
      <text x="0" y="15" class=${i === top ? "strong" : ""}>${memory.labels[i]}</text>
      <rect class="track" x=${left} y="4" width=${room} height="13" />
      <rect x=${left} y="4" width=${Math.max(room * w, 0.5)} height="13" fill=${itemColour(i)} />
      <text class="figure" x=${width} y="15" text-anchor="end" data-weight=${memory.labels[i]}>${w < 0.0005 ? "< 0.001" : share(w)}</text>
    </g>`)}
    <text class="step" x="0" y=${mixture - 8}>output: the values, mixed by weight</text>
    ${weights.map((w, i) => {
      const start = from;
      from += room * w;
      return html`<rect key=${`part${i}`} x=${start} y=${mixture} width=${room * w} height="26" fill=${colour(memory.values[i])} />`;
    })}
    <text x=${left + room + 10} y=${mixture + 18} text-anchor="middle">=</text>
    <rect class="mixed" x=${left + room + 22} y=${mixture} width=${right - 22} height="26" fill=${colour(output)} />
    <text class="step" x="0" y=${strip - 8}>weight of ${memory.labels[top]} in ${drawn.length} readings with noise on the keys</text>
    <line class="axis" x1=${left} x2=${left + room} y1=${strip + 22.5} y2=${strip + 22.5} />
    ${drawn.map((w, i) => html`<circle key=${`draw${i}`} cx=${at(w)} cy=${strip + 4 + 14 * ((i * 0.6180339887) % 1)} r="2.6" fill=${itemColour(top)} fill-opacity="0.9" />`)}
    ${[0, 0.5, 1].map((w) => html`<text class="figure" x=${at(w)} y=${strip + 38} text-anchor="middle">${{ 0: "0", 0.5: "½", 1: "1" }[w]}</text>`)}
  </svg></div>`;
}

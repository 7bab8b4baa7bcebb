// Weights as bars, and the output as a mixture of values.
import { html, useRef } from "../vendor/htm-preact.js";
import { colour, itemColour } from "./items.js";
import { share, vector } from "./numbers.js";
import { useWidth } from "./chart.js";

/** One bar per item; horizontal with numbers, or vertical without if there are many items. */
export function Bars({ labels, weights, wanted }) {
  const frame = useRef(null);
  const width = useWidth(frame);
  const description = `Weights: ${labels.map((l, i) => `${l} ${share(weights[i])}`).slice(0, 8).join(", ")}`;
  return html`<div class="bars" ref=${frame}>${width > 0 && (labels.length <= 12
    ? html`<${Rows} ...${{ labels, weights, wanted, width, description }} />` : html`<${Columns} ...${{ labels, weights, wanted, width, description }} />`)}</div>`;
}

function Rows({ labels, weights, wanted, width, description }) {
  const row = 24, left = 26, right = 78, room = Math.max(width - left - right, 20);
  return html`<svg width=${width} height=${row * labels.length} role="img" aria-label=${description}>
    ${labels.map((label, i) => html`<g key=${label} transform=${`translate(0 ${row * i})`}>
      <text x="0" y="16" class=${wanted.includes(i) ? "strong" : ""}>${label}</text>
      <rect class="track" x=${left} y="5" width=${room} height="14" />
      <rect x=${left} y="5" width=${Math.max(room * weights[i], 0.5)} height="14" fill=${itemColour(i)} />
      <text class="figure" x=${width} y="16" text-anchor="end" data-weight=${label}>${share(weights[i])}</text>
    </g>`)}
  </svg>`;
}

function Columns({ labels, weights, wanted, width, description }) {
  const height = 150, foot = 22, head = 18, room = height - foot - head, step = width / labels.length;
  const top = Math.max(...weights);
  const labelled = (i) => wanted.includes(i) || i < 2 || weights[i] === top;
  return html`<svg width=${width} height=${height} role="img" aria-label=${description}>
    <line class="axis" x1="0" x2=${width} y1=${height - foot + 0.5} y2=${height - foot + 0.5} />
    ${labels.map((label, i) => {
      const tall = Math.max(room * weights[i], 0.5);
      return html`<g key=${label}>
        <rect x=${step * i + 0.1 * step} width=${0.8 * step} y=${height - foot - tall} height=${tall} fill=${itemColour(i)} />
        ${labelled(i) && html`<text x=${step * (i + 0.5)} y=${height - 6} text-anchor="middle">${label}</text>`}
        ${weights[i] === top && html`<text class="figure" data-weight=${label} x=${Math.min(Math.max(step * (i + 0.5), 24), width - 24)} y=${height - foot - tall - 5} text-anchor="middle">${share(weights[i])}</text>`}
      </g>`;
    })}
  </svg>`;
}

/** The output: the share of each item, and their mixture. Values in [0, 1]³ are shown as colours. */
export function Blend({ weights, values, output }) {
  const frame = useRef(null);
  const width = useWidth(frame);
  const coloured = output.length === 3 && values.every((v) => v.every((c) => c >= 0 && c <= 1));
  const room = Math.max(width - 120, 60);
  let left = 0;
  return html`<div class="blend" ref=${frame}>${width > 0 && html`
    <svg width=${width} height="44" shape-rendering="crispEdges" role="img" aria-label=${`The output is ${vector(output)}`}>
      ${weights.map((w, i) => {
        const from = left;
        left += room * w;
        return room * w < 0.3 ? null : html`<rect key=${i} x=${from} y="0" width=${room * w} height="44" fill=${coloured ? colour(values[i]) : itemColour(i)} />`;
      })}
      ${coloured && html`<text x=${room + 20} y="28" text-anchor="middle">=</text><rect class="mixed" x=${room + 40} y="0" width=${Math.max(width - room - 40, 20)} height="44" fill=${colour(output)} />`}
    </svg>`}
  </div>`;
}

/** Named probabilities, each as a bar with its number. */
export function Shares({ rows }) {
  const frame = useRef(null);
  const width = useWidth(frame);
  const row = 40;
  return html`<div class="bars" ref=${frame}>${width > 0 && html`<svg width=${width} height=${row * rows.length} role="img" aria-label=${rows.map(([name, p]) => `${name} ${share(p)}`).join(", ")}>
    ${rows.map(([name, p], i) => html`<g key=${i} transform=${`translate(0 ${row * i})`}>
      <text x="0" y="14" class=${i ? "" : "strong"}>${name.length > 42 ? `${name.slice(0, 41)}…` : name}</text>
      <text class="figure" x=${width} y="14" text-anchor="end">${share(p)}</text>
      <rect class="track" x="0" y="20" width=${width} height="9" /><rect x="0" y="20" width=${Math.max(width * p, 0.5)} height="9" fill=${i ? "var(--item-other)" : "var(--ink)"} />
    </g>`)}
  </svg>`}</div>`;
}

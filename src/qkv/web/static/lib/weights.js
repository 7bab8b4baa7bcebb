// The output as a mixture of values, and probabilities as bars.
import { html, useRef } from "./html.js";
import { colour, inkOn, itemColour } from "./items.js";
import { share, vector } from "./numbers.js";
import { useWidth } from "./chart.js";

const LABEL_WIDTH = 16; // a narrower part of the mixture has no label

/** The output: the share of each item, named where there is room, and their mixture. Values in [0, 1]³ are shown as colours. */
export function Blend({ weights, values, labels, output }) {
  const frame = useRef(null);
  const width = useWidth(frame);
  const coloured = output.length === 3 && values.every((v) => v.every((c) => c >= 0 && c <= 1));
  const room = Math.max(width - 120, 60);
  let left = 0;
  return html`<div class="blend" ref=${frame}>${width > 0 && html`
    <svg width=${width} height="44" role="img" aria-label=${`The output is ${vector(output)}`}>
      ${weights.map((w, i) => {
        const from = left, wide = room * w;
        left += wide;
        return wide < 0.3 ? null : html`<g key=${i}><rect x=${from} y="0" width=${wide} height="44" fill=${coloured ? colour(values[i]) : itemColour(i)} shape-rendering="crispEdges" />
          ${wide >= LABEL_WIDTH && html`<text class="part" x=${from + wide / 2} y="27" text-anchor="middle" style=${{ fill: inkOn(values[i]) }}>${labels[i]}</text>`}</g>`;
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

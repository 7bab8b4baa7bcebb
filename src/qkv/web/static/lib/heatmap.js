// A matrix as a heat map with its entries: dark is positive, purple is negative.
import { html, useRef } from "./html.js";
import { svgSubscripts } from "./text.js";
import { number } from "./numbers.js";
import { useWidth } from "./chart.js";

/** `rows` and `columns` are labels; `top` is the absolute value with the darkest colour, by default the largest entry. */
export function HeatMap({ title, matrix, rows, columns, top, digits = 2, room = 1 }) {
  const frame = useRef(null);
  const width = useWidth(frame);
  const m = matrix.length, n = matrix[0]?.length ?? 0;
  const left = rows ? 10 + 7 * Math.max(...rows.map((r) => r.length)) : 2;
  const head = columns ? 22 : 2;
  const cell = Math.max(14, Math.min(54, (width * room - left - 4) / n));
  const tall = Math.min(cell, 40);
  const most = top ?? Math.max(1e-12, ...matrix.flat().map(Math.abs));
  const printed = cell >= 30;
  return html`<figure class="heat" ref=${frame}>
    ${title && html`<h3>${title}</h3>`}
    ${width > 0 && html`<svg width=${left + cell * n + 4} height=${head + tall * m + 4} role="img"
      aria-label=${`${title}: ${matrix.map((row) => row.map((v) => number(v, digits)).join(" ")).join("; ")}`}>
      ${columns?.map((c, j) => html`<text class="side" x=${left + cell * (j + 0.5)} y="14" text-anchor="middle">${svgSubscripts(c)}</text>`)}
      ${matrix.map((row, i) => html`
        ${rows && html`<text class="side" x=${left - 8} y=${head + tall * (i + 0.5) + 4} text-anchor="end">${svgSubscripts(rows[i])}</text>`}
        ${row.map((v, j) => {
          const strength = Math.min(1, Math.abs(v) / most);
          return html`<g><rect class=${v < 0 ? "minus" : "plus"} x=${left + cell * j + 1} y=${head + tall * i + 1} width=${cell - 2} height=${tall - 2}
              fill-opacity=${0.04 + 0.86 * strength} />
            ${printed && html`<text class=${`entry${v < 0 ? (strength > 0.75 ? " dark" : "") : strength > 0.62 ? " over" : ""}`} x=${left + cell * (j + 0.5)} y=${head + tall * (i + 0.5) + 4} text-anchor="middle">${entry(v, digits)}</text>`}</g>`;
        })}`)}
    </svg>`}
  </figure>`;
}

function entry(v, digits) {
  if (Math.abs(v) < 5e-3) return "0";
  return number(v, digits).replace("-", "−").replace(/^(−?)0\./, "$1.");
}

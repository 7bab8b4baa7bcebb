// All heads of a model: a small picture of each, by layer and number, in the colour of its kind.
import { html, useEffect, useMemo, useRef } from "./html.js";
import { bytesOf } from "./arcs.js";

export const KINDS = {
  "previous token": [0, 114, 178], induction: [213, 94, 0], duplicate: [230, 159, 0], "first token": [128, 128, 134],
  self: [0, 158, 115], broad: [204, 121, 167], mixed: [86, 180, 233],
};

/** The colour of a kind of head. */
export function kindColour(kind) {
  return `rgb(${(KINDS[kind] ?? KINDS.mixed).join(" ")})`;
}

/** What a head looks up, with the number that says so. */
export function kindText({ kind, score, judged_on: on }) {
  const number = score.toFixed(2);
  if (kind === "broad") return `broad: it averages ${number} of the tokens that it sees on ${on}`;
  if (kind === "mixed") {  // rounded down, since 0.399 is below the limit
    const where = on === "repeated random tokens" ? ` on ${on}` : "";
    return `mixed: no pattern takes 0.4 of its weight${where}, the largest takes ${(Math.floor(100 * score) / 100).toFixed(2)}`;
  }
  return `${kind}: ${number} of its weight on ${on}`;
}

/** The grid. Arrow keys move the choice; one cell is in the tab order. */
export function HeadGrid({ survey, layer, head, onHead }) {
  const { layers, heads, rows, picture_size: size, pictures } = survey;
  const frame = useRef(null);
  const bytes = useMemo(() => bytesOf(pictures), [pictures]);
  useEffect(() => {
    frame.current.querySelectorAll("canvas").forEach((canvas, i) => paint(canvas, bytes.subarray(i * size * size, (i + 1) * size * size), size, KINDS[rows[i].kind] ?? KINDS.mixed));
  }, [bytes]);
  const press = (event) => {
    const [down, across] = { ArrowDown: [1, 0], ArrowUp: [-1, 0], ArrowRight: [0, 1], ArrowLeft: [0, -1] }[event.key] ?? [0, 0];
    if (!down && !across) return;
    event.preventDefault();
    const to = [Math.min(Math.max(layer + down, 0), layers - 1), Math.min(Math.max(head + across, 0), heads - 1)];
    onHead(...to);
    frame.current.querySelector(`[data-head="${to[0]}.${to[1]}"]`)?.focus();
  };
  const cells = useMemo(() => rows.map((row) => ({ ...row, name: `${row.layer}.${row.head}` })), [rows]);
  return html`<div class="head-grid" ref=${frame} role="group" aria-label="All heads, by layer" style=${{ "--columns": heads }} onKeyDown=${press}>
    ${Array.from({ length: layers }, (_, l) => html`<span class="side" key=${`l${l}`}>${l}</span>
      ${cells.slice(l * heads, (l + 1) * heads).map((row) => html`<button key=${row.name} type="button" data-head=${row.name} tabindex=${row.layer === layer && row.head === head ? 0 : -1}
        aria-pressed=${row.layer === layer && row.head === head} aria-label=${`Head ${row.name}, ${kindText(row)}`} title=${`${row.name} ${kindText(row)}`} onClick=${() => onHead(row.layer, row.head)}>
        <canvas width=${size} height=${size}></canvas></button>`)}`)}
  </div>`;
}

/** Weights as dots in the colour of the kind: the larger, the less transparent. */
function paint(canvas, weights, size, [r, g, b]) {
  const image = new ImageData(size, size);
  weights.forEach((w, i) => image.data.set([r, g, b, Math.round(255 * Math.sqrt(w / 255))], 4 * i));
  canvas.getContext("2d").putImageData(image, 0, 0);
}

/** Which colour is which kind, with how many heads there are of it. */
export function Legend({ rows }) {
  const counts = Object.keys(KINDS).map((kind) => [kind, rows.filter((row) => row.kind === kind).length]).filter(([, count]) => count);
  return html`<ul class="kinds">${counts.map(([kind, count]) => html`<li key=${kind}><span class="dot" style=${{ background: kindColour(kind) }}></span>${count} ${kind}</li>`)}</ul>`;
}

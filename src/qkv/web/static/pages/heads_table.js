// The sortable table of heads, and the job that measures what is lost without each of them.
import { html, useMemo, useState } from "../lib/html.js";
import { Problem } from "../lib/controls.js";
import { useJob } from "../lib/jobs.js";
import { kindColour } from "../lib/head_grid.js";
import { atLeast, number, percentage } from "../lib/numbers.js";

const fixed = (digits) => (x) => (x === null || x === undefined ? "–" : x.toFixed(digits));
const proved = (x) => (x === null || x === undefined ? "–" : atLeast(x, 3));
const signed = (x) => (x === null || x === undefined ? "–" : `${x < 0 ? "−" : "+"}${number(Math.abs(x), 2)}`);
const COLUMNS = [
  ["score", "score", (x, row) => fixed(2)(row.kind === "mixed" ? Math.min(x, 0.39) : x), "mean weight on the pattern; for broad, the share of tokens that it averages"],
  ["effective", "averages", fixed(1), "how many tokens it effectively averages: e to the entropy of its weights"],
  ["margin", "margin", fixed(2), "median difference between the largest score and the second"],
  ["radius", "radius", proved, "how far every key may move, as a share of a key’s length, before another item can be on top; a proved bound, and the median over tokens"],
  ["reads", "reads", percentage, "share of tokens that put at least 90 % of their weight on one token"],
];
const MEASURED = [
  ["effect", "effect", signed, "what is lost when the head’s output is replaced by its mean over all tokens"],
  ["copying", "copying", fixed(2), "1 if looking at a token makes that token likelier"],
  ["rank", "rank", fixed(1), "effective rank of what it writes"],
  ["error4", "4 bits: error", percentage, "how far the output moves with keys of 4 bits, as a share of the output"],
  ["kept4", "top stays", percentage, "share of tokens whose largest weight stays where it is with keys of 4 bits"],
];

/** Rows in the order of a column; what is not known comes last. */
export function sorted(rows, key, down) {
  const known = (x) => x !== null && x !== undefined;
  return [...rows].sort((a, b) => {
    const p = a[key], q = b[key];
    if (!known(p) || !known(q)) return known(q) - known(p);
    const order = typeof p === "string" ? p.localeCompare(q) : p - q;
    return (down ? -order : order) || a.layer - b.layer || a.head - b.head;
  });
}

/** The rows of a survey with what a job has measured of the same heads. */
export function joined(rows, result) {
  if (!result) return rows;
  const at = (list, row) => list?.find((x) => x.layer === row.layer && x.head === row.head);
  return rows.map((row) => {
    const more = at(result.rows, row) ?? {}, bits = at(result.rounding?.rows, row);
    return { ...row, effect: more.effect, copying: more.copying, rank: more.rank, error4: bits?.measured, kept4: bits?.survives };
  });
}

export function HeadsTable({ survey, text, layer, head, onHead, measurable }) {
  const [order, setOrder] = useState({ key: "layer", down: false });
  const { job, error, start, cancel, running } = useJob("heads");
  const mine = (settings) => settings?.model === survey.model && settings?.text === text;
  const measured = job?.status === "done" && mine(job.settings) ? job.result : null;
  const rows = useMemo(() => sorted(joined(survey.rows, measured), order.key, order.down), [survey, measured, order]);
  const columns = measured ? [...COLUMNS, ...MEASURED] : COLUMNS;
  const by = (key, first) => () => setOrder((old) => (old.key === key ? { key, down: !old.down } : { key, down: first }));
  const heading = (key, name, hint, first = true) => html`<th scope="col" aria-sort=${order.key === key ? (order.down ? "descending" : "ascending") : null}>
    <button type="button" title=${hint} onClick=${by(key, first)}>${name}<span aria-hidden="true">${order.key === key ? (order.down ? " ↓" : " ↑") : ""}</span></button></th>`;
  return html`<section class="heads-table">
    <h2>${survey.rows.length} heads, by ${order.key === "layer" ? "layer" : columns.find(([key]) => key === order.key)?.[1] ?? order.key}</h2>
    <div class="scrolling" tabindex="0" role="region" aria-label="Table of heads">
      <table><thead><tr>${heading("layer", "head", "layer and number", false)}${heading("kind", "kind", "what it looks up", false)}${columns.map(([key, name, , hint]) => heading(key, name, hint))}</tr></thead>
      <tbody>${rows.map((row) => html`<tr key=${`${row.layer}.${row.head}`} class=${row.layer === layer && row.head === head ? "picked" : ""}>
        <th scope="row"><button type="button" class="link" aria-label=${`Show head ${row.layer}.${row.head}`} onClick=${() => onHead(row.layer, row.head)}>${row.layer}.${row.head}</button></th>
        <td><span class="dot" style=${{ background: kindColour(row.kind) }}></span>${row.kind}</td>
        ${columns.map(([key, , show]) => html`<td class="n" key=${key}>${show(row[key], row)}</td>`)}</tr>`)}</tbody></table>
    </div>
    ${measured && html`<p class="quiet">Effect: ${measured.effect_unit}, on ${measured.effect_tokens} tokens, with the head’s output replaced by its mean over all tokens.</p>`}
    ${measurable && !measured && html`<div class="row">
      <button class="act" disabled=${running} onClick=${() => start({ model: survey.model, text })}>Measure what is lost without each head</button>
      ${running && html`<progress max=${job.total ?? 1} value=${job.done} aria-label="Heads measured"></progress> <button class="link" onClick=${cancel}>Cancel</button>`}
      <span class="quiet">runs the model once for each head: seconds for a small model, minutes for a large one</span></div>`}
    <${Problem} error=${error ?? (job?.status === "failed" ? job.error : null)} />
  </section>`;
}

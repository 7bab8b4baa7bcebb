// The path of a lookup: from k·q by scale and exp to the weight of every item, and how one weight comes about.
import { html, useState } from "../lib/html.js";
import { itemColour } from "../lib/items.js";
import { number, share } from "../lib/numbers.js";
import { Term } from "../lib/terms.js";

const MAX_ROWS = 12; // with more items, those with most weight and the wanted ones are shown, and the others as one row
const TOP_ROWS = 8;
const BAR = 74;

/** The rows of a reading: dot products, scores, exponentials relative to the largest, and weights. */
export function stepsOf(keys, query, { scores, weights }) {
  const largest = Math.max(...scores);
  const rows = keys.map((key, i) => ({
    i, dot: key.reduce((sum, c, axis) => sum + c * query[axis], 0), score: scores[i], power: Math.exp(scores[i] - largest), weight: weights[i],
  }));
  return { rows, largest, sum: rows.reduce((total, r) => total + r.power, 0) };
}

/** Which rows are shown first; the heaviest and the wanted ones, in the order of their weights. */
export function shortList(rows, wanted) {
  const heaviest = [...rows].sort((p, q) => q.weight - p.weight || p.i - q.i);
  const kept = new Set([...heaviest.slice(0, TOP_ROWS).map((r) => r.i), ...wanted.slice(0, MAX_ROWS - TOP_ROWS)]);
  return heaviest.filter((r) => kept.has(r.i));
}

/** The steps of every item, and one of them worked out; `reply` is what the server replied to `request`. */
export function Path({ request, reply }) {
  const { keys, labels, query, scale } = request, wanted = Object.keys(request.wanted ?? {}).map((label) => labels.indexOf(label));
  const [all, setAll] = useState(false);
  const [picked, setPicked] = useState(null);
  const { rows, largest, sum } = stepsOf(keys, query, reply);
  const many = rows.length > MAX_ROWS;
  const shown = many && !all ? shortList(rows, wanted) : rows;
  const hidden = rows.filter((r) => !shown.includes(r));
  const heaviest = rows.reduce((p, q) => (q.weight > p.weight ? q : p));
  const one = rows[labels.indexOf(picked)] ?? heaviest;
  return html`<div class="path">
    <div class="scrolling" tabindex=${all && many ? 0 : null} role=${all && many ? "region" : null} aria-label=${all && many ? "The steps of every item" : null}><table>
      <thead><tr><th scope="col">item</th><th scope="col" class="n"><${Term} name="key">k<//>·<${Term} name="query">q<//></th><th scope="col" class="n"><${Term} name="score">× ${number(scale)}<//></th>
        <th scope="col" class="n">e<sup>score − max</sup></th><th scope="col" colspan="2">÷ sum = <${Term} name="weight" /></th></tr></thead>
      <tbody>${shown.map((r) => html`<tr key=${r.i} class=${r === one ? "picked" : null}>
        <th scope="row"><button class=${`pick${wanted.includes(r.i) ? " strong" : ""}`} aria-pressed=${r === one} aria-label=${`How the weight of ${labels[r.i]} comes about`} onClick=${() => setPicked(labels[r.i])}>
          <svg class="swatch" width="10" height="10" aria-hidden="true"><circle cx="5" cy="5" r="5" fill=${itemColour(r.i)} /></svg>${labels[r.i]}</button></th>
        <td class="n">${number(r.dot, 3)}</td><td class="n">${number(r.score, 3)}</td><td class="n">${share(r.power)}</td>
        <td><svg width=${BAR} height="12" aria-hidden="true"><rect class="track" width=${BAR} height="12" /><rect width=${Math.max(BAR * r.weight, 0.5)} height="12" fill=${itemColour(r.i)} /></svg></td>
        <td class="n" data-weight=${labels[r.i]}>${share(r.weight)}</td></tr>`)}
        ${hidden.length > 0 && html`<tr class="rest"><th scope="row" colspan="3">the other ${hidden.length} together</th><td class="n">${share(total(hidden, "power"))}</td>
          <td><svg width=${BAR} height="12" aria-hidden="true"><rect class="track" width=${BAR} height="12" /><rect class="other" width=${Math.max(BAR * total(hidden, "weight"), 0.5)} height="12" /></svg></td>
          <td class="n" data-weight-rest>${share(total(hidden, "weight"))}</td></tr>`}
      </tbody>
      <tfoot><tr><th scope="row" colspan="3">sum</th><td class="n" data-fact="sum">${number(sum)}</td><td></td><td class="n">1</td></tr></tfoot>
    </table></div>
    ${many && html`<button class="link" onClick=${() => setAll(!all)}>${all ? "Show the largest only" : `Show all ${rows.length} items`}</button>`}
    <p class="worked" data-fact="worked" aria-live="off">${worked(one, keys[one.i], query, scale, largest, sum, labels[one.i])}</p>
  </div>`;
}

function total(rows, name) {
  return rows.reduce((sum, r) => sum + r[name], 0);
}

/** One weight in words and numbers. */
export function worked(row, key, query, scale, largest, sum, label) {
  const product = key.map((c, axis) => `${number(c)}·${signed(query[axis])}`).join(" + ");
  return html`<b>${label}</b>: k·q = ${product} = ${number(row.dot)}; times ${number(scale)} is ${number(row.score)}; minus the largest score, ${number(largest)}, is ${number(row.score - largest)};
    ${" "}e to this is ${share(row.power)}; divided by the sum ${number(sum)} it is <b>${share(row.weight)}</b>, the share of v<sub>${label}</sub> in the output.`;
}

function signed(x) {
  return x < 0 ? `(${number(x)})` : number(x);
}

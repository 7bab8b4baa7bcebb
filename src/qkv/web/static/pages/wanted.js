// What a query should read: some items, each with its part.
import { html } from "../vendor/htm-preact.js";
import { ink } from "../lib/items.js";
import { Box } from "../lib/parts.js";
import { share } from "../lib/numbers.js";

/** Parts as weights that sum to 1, of the items that there are; an empty wish stays empty. */
export function normalised(wanted, labels) {
  const kept = Object.entries(wanted).filter(([label, part]) => labels.includes(label) && Number.isFinite(part) && part > 0);
  const total = kept.reduce((sum, [, part]) => sum + part, 0);
  return Object.fromEntries(kept.map(([label, part]) => [label, part / total]));
}

/** The list of wanted items: parts can be typed, items added and dropped. */
export function Wanted({ wanted, wish, labels, onChange }) {
  const rest = labels.filter((label) => !(label in wish));
  const drop = (label) => onChange(Object.fromEntries(Object.entries(wanted).filter(([l]) => l !== label)));
  return html`<fieldset class="wanted"><legend>Wanted</legend>
    ${Object.keys(wish).map((label) => html`<div class="part" key=${label}>
      <span class="dot" style=${{ background: ink(labels.indexOf(label)) }}></span><b>${label}</b>
      <${Box} label=${`Part of ${label}`} value=${wanted[label]} min=${1e-6} max=${1e6} onInput=${(part) => onChange({ ...wanted, [label]: part })} />
      <span class="quiet">${Object.keys(wish).length > 1 ? `= ${share(wish[label])}` : "alone"}</span>
      <button class="link" aria-label=${`Do not want ${label}`} onClick=${() => drop(label)}>drop</button>
    </div>`)}
    <select aria-label="Want another item" value="" onChange=${(e) => { if (e.target.value) onChange({ ...wanted, [e.target.value]: 1 }); e.target.value = ""; }}>
      <option value="">${Object.keys(wish).length ? "and …" : "choose an item …"}</option>
      ${rest.map((label) => html`<option value=${label}>${label}</option>`)}
    </select>
  </fieldset>`;
}

// The wanted items of a query, each with its part of the weight.
import { html } from "../lib/html.js";
import { itemColour } from "../lib/items.js";
import { Box } from "../lib/controls.js";
import { share } from "../lib/numbers.js";

/** Parts as weights that sum to 1, for the items that exist; empty if there are none. */
export function normalised(wanted, labels) {
  const parts = Object.entries(wanted).filter(([label, part]) => labels.includes(label) && Number.isFinite(part) && part > 0);
  const total = parts.reduce((sum, [, part]) => sum + part, 0);
  return Object.fromEntries(parts.map(([label, part]) => [label, part / total]));
}

/** The list of wanted items: parts can be edited, items added and removed. */
export function Wanted({ wanted, weights, labels, onChange }) {
  const others = labels.filter((label) => !(label in weights));
  const remove = (label) => onChange(Object.fromEntries(Object.entries(wanted).filter(([l]) => l !== label)));
  return html`<fieldset class="wanted"><legend>Wanted</legend>
    ${Object.keys(weights).map((label) => html`<div class="part" key=${label}>
      <span class="dot" style=${{ background: itemColour(labels.indexOf(label)) }}></span><b>${label}</b>
      <${Box} label=${`Part of ${label}`} value=${wanted[label]} min=${1e-6} max=${1e6} onInput=${(part) => onChange({ ...wanted, [label]: part })} />
      <span class="quiet">${Object.keys(weights).length > 1 ? `= ${share(weights[label])}` : "alone"}</span>
      <button class="link" aria-label=${`Remove ${label} from the wanted items`} onClick=${() => remove(label)}>remove</button>
    </div>`)}
    <select aria-label="Add a wanted item" value="" onChange=${(e) => { if (e.target.value) onChange({ ...wanted, [e.target.value]: 1 }); e.target.value = ""; }}>
      <option value="">${Object.keys(weights).length ? "add an item …" : "choose an item …"}</option>
      ${others.map((label) => html`<option value=${label}>${label}</option>`)}
    </select>
  </fieldset>`;
}

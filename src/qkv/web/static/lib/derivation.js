// A derivation: each line in words, with its formula below.
import { html } from "./html.js";
import { Maths } from "./maths.js";
import { subscripts } from "./text.js";

/** Lines of { text, latex }. Words that only repeat the formula are left out, and so is a formula that is only words. */
export function Lines({ lines }) {
  return html`<ol class="derivation">${lines.map((line, i) => {
    const formula = !/^\\text\{(?:[^{}\\]|\\.)*\}$/.test(line.latex);
    const words = !formula || /[A-Za-z]{4}/.test(line.text);
    return html`<li key=${i}>${words && html`<p class=${formula ? "quiet" : ""}>${subscripts(line.text)}</p>`}${formula && html`<${Maths} tex=${line.latex} text=${line.text} display />`}</li>`;
  })}</ol>`;
}

// Wiring: tokens, rules of who reads whom and writes what, and the Q, K, V that follow them.
import { html, useMemo } from "../vendor/htm-preact.js";
import { useReply } from "../lib/api.js";
import { Heat } from "../lib/heat.js";
import { number } from "../lib/numbers.js";
import { Lines } from "../lib/derivation.js";
import { capital, lowered } from "../lib/names.js";
import { Problem, Slider, Spoken } from "../lib/parts.js";
import { useLink } from "../lib/route.js";
import { Code, Share } from "../lib/save.js";
import { readReads, readSum } from "../lib/sums.js";

const DEFAULTS = {
  tokens: [["x_1", "u_d + u_b"], ["x_2", "u_a"], ["x_3", "u_c + u_b"]],
  rules: [["x_1", "x_2", "u_b"], ["x_2", "x_1", "u_b - u_c"]],
  beta: 1,
  tol: 0.05,
};
const MOST = 6;

/** The request that a state stands for, or what cannot be read in it. */
export function requestOf(state) {
  const tokens = rowsOf(state.tokens, 2).map(([name, is]) => ({ name: name.trim(), is: readSum(is) }));
  const rules = rowsOf(state.rules, 3).map(([token, reads, writes]) => ({ token: token.trim(), reads: readReads(reads), writes: readSum(writes) }));
  const odd = tokens.find((t) => !t.name || !t.is) ?? rules.find((r) => !r.token || !r.reads || !r.writes);
  return odd ? null : { tokens, rules, beta: Math.min(Math.max(state.beta, 0.1), 20), tol: Math.min(Math.max(state.tol, 1e-6), 0.5) };
}

function rowsOf(rows, width) {
  return rows.filter((r) => Array.isArray(r) && r.length === width && r.every((c) => typeof c === "string")).slice(0, MOST);
}

export function Page() {
  const [state, patch] = useLink("wiring", DEFAULTS);
  const request = useMemo(() => requestOf(state), [state]);
  const { reply, error, current } = useReply("api/wiring", request, { delay: 60 });
  const tokens = rowsOf(state.tokens, 2), rules = rowsOf(state.rules, 3);
  const edit = (name, rows) => (i, column, text) => patch({ [name]: rows.map((r, j) => (i === j ? r.map((c, k) => (k === column ? text : c)) : r)) });
  const unread = request ? null : { message: "A sum of named vectors is wanted in each field, as u_d + u_b or 2 u_a - 1/2 u_c." };
  return html`
    <h1>Wiring</h1>
    <p class="lead">Tokens are sums of orthogonal vectors of length β. Say who reads whom and what it writes;
      get Q, K and V that do it, or a proof that none can.</p>
    <${Share} name="wiring" python=${reply?.python} json=${reply && { request, reply }} />
    <${Problem} error=${unread ?? error} />
    <div class="page wiring" aria-busy=${!current}>
      <div class="controls">
        <fieldset class="rows"><legend>Tokens</legend>
          ${tokens.map(([name, is], i) => html`<div class="line" key=${i}>
            <${Text} label=${`Name of token ${i + 1}`} value=${name} good=${name.trim() !== ""} onInput=${(t) => edit("tokens", tokens)(i, 0, t)} />
            <span>=</span>
            <${Text} label=${`What ${name} is`} value=${is} good=${readSum(is) !== null} onInput=${(t) => edit("tokens", tokens)(i, 1, t)} />
            <${Drop} label=${`Drop token ${name}`} many=${tokens.length} onClick=${() => patch({ tokens: tokens.filter((_, j) => j !== i) })} />
          </div>`)}
          <${Add} many=${tokens.length} onClick=${() => patch({ tokens: [...tokens, [`x_${tokens.length + 1}`, "u_e"]] })}>Add a token<//>
        </fieldset>
        <fieldset class="rows"><legend>Rules</legend>
          ${rules.map(([token, reads, writes], i) => html`<div class="line rule" key=${i}>
            <${Text} label=${`Rule ${i + 1}, token`} value=${token} good=${tokens.some(([n]) => n.trim() === token.trim())} onInput=${(t) => edit("rules", rules)(i, 0, t)} />
            <span>reads</span>
            <${Text} label=${`What ${token} reads`} value=${reads} good=${readReads(reads) !== null} onInput=${(t) => edit("rules", rules)(i, 1, t)} />
            <${Drop} label=${`Drop the rule of ${token}`} many=${rules.length} onClick=${() => patch({ rules: rules.filter((_, j) => j !== i) })} />
            <span class="second">writes</span>
            <${Text} className="last" label=${`What ${token} writes`} value=${writes} good=${readSum(writes) !== null} onInput=${(t) => edit("rules", rules)(i, 2, t)} />
          </div>`)}
          <${Add} many=${rules.length} onClick=${() => patch({ rules: [...rules, [free(tokens, rules), tokens[0][0], "u_b"]] })}>Add a rule<//>
        </fieldset>
        <${Slider} name="beta" label="β" hint="length of the vectors: scores grow as β²" value=${request?.beta ?? state.beta} min=${0.1} max=${20} log onInput=${(beta) => patch({ beta })} />
        <${Slider} name="tol" label="Tolerance at β = 1" hint="how near the weights come to the rules" value=${request?.tol ?? state.tol} min=${1e-6} max=${0.5} log onInput=${(tol) => patch({ tol })} />
      </div>
      ${reply && html`<div class="views">
        ${reply.possible ? html`
          <section>
            <h2>${lowered(title(reply))}</h2>
            <div class="heats">
              <${Heat} title="Weights" matrix=${reply.weights} rows=${reply.names} columns=${reply.names} top=${1} />
              <${Heat} title="Outputs, in vectors" matrix=${reply.outputs} rows=${reply.names} columns=${reply.vectors} />
            </div>
          </section>
          <section>
            <h2>Q, K and V do not depend on β</h2>
            <div class="heats">
              <${Heat} title="Q" matrix=${reply.Q} columns=${reply.vectors} />
              <${Heat} title="K" matrix=${reply.K} columns=${reply.vectors} />
              <${Heat} title="V" matrix=${reply.V} rows=${reply.vectors} columns=${reply.vectors} />
            </div>
            <p class="quiet">${capital(reply.says)}.</p>
          </section>` : html`<div class="found no"><p><b>✗ Impossible</b> No Q and K follow these rules.</p><p>${reply.says}</p></div>`}
        <section><h2>The derivation</h2>
          <${Lines} lines=${reply.derivation} />
        </section>
      </div>`}
    </div>
    ${reply?.possible && html`<${Spoken}>${title(reply)}<//>`}
    <${Code} python=${reply?.python} />`;
}

/** What each token looks at most. */
function title(reply) {
  const parts = reply.names.map((name, i) => {
    const most = reply.weights[i].indexOf(Math.max(...reply.weights[i]));
    return `${name} reads ${reply.names[most]} (${number(reply.weights[i][most], 3)})`;
  });
  return parts.join(", ");
}

function free(tokens, rules) {
  return (tokens.find(([name]) => !rules.some(([token]) => token === name)) ?? tokens[0])[0];
}

function Text({ label, value, good, onInput, className = "" }) {
  return html`<input class=${`text ${className}`} aria-label=${label} value=${value} aria-invalid=${!good} maxlength="200" autocomplete="off" spellcheck=${false} onInput=${(e) => onInput(e.target.value)} />`;
}

function Drop({ label, many, onClick }) {
  return html`<button class="link" aria-label=${label} disabled=${many < 2} onClick=${onClick}>drop</button>`;
}

function Add({ many, onClick, children }) {
  return html`<div><button class="link" disabled=${many >= MOST} onClick=${onClick}>${children}</button></div>`;
}

// Wiring page: tokens, rules (which token reads which and writes what), and Q, K, V that satisfy them.
import { html, useMemo } from "../lib/html.js";
import { useReply } from "../lib/api.js";
import { HeatMap } from "../lib/heatmap.js";
import { atMost, listed, number } from "../lib/numbers.js";
import { Lines } from "../lib/derivation.js";
import { subscripts, withFullStop } from "../lib/text.js";
import { Problem, Slider, Announcement } from "../lib/controls.js";
import { useUrlState } from "../lib/route.js";
import { Code, NOTHING, Share } from "../lib/export.js";
import { readReads, readSum } from "../lib/vector_sums.js";

const DEFAULTS = {
  tokens: [["x_1", "u_d + u_b"], ["x_2", "u_a"], ["x_3", "u_c + u_b"]],
  rules: [["x_1", "x_2", "u_b"], ["x_2", "x_1", "u_b - u_c"]],
  beta: 1,
  tol: 0.05,
};
const MAX_ROWS = 6; // of tokens and of rules, as limits.py has it

/** The request of a state, or null if a field cannot be parsed. */
export function requestOf(state) {
  const tokens = rowsOf(state.tokens, 2).map(([name, is]) => ({ name: name.trim(), is: readSum(is) }));
  const rules = rowsOf(state.rules, 3).map(([token, reads, writes]) => ({ token: token.trim(), reads: readReads(reads), writes: readSum(writes) }));
  const invalid = tokens.find((t) => !t.name || !t.is) ?? rules.find((r) => !r.token || !r.reads || !r.writes);
  return invalid ? null : { tokens, rules, beta: Math.min(Math.max(state.beta, 0.1), 20), tol: Math.min(Math.max(state.tol, 1e-6), 0.5) };
}

/** The first field that cannot be read, by its name and what stands in it. */
function unreadable(tokens, rules) {
  const fields = [
    ...tokens.flatMap(([name, is], i) => [[`The name of token ${i + 1}`, name, name.trim() !== ""], [`What ${name || "a token"} is`, is, readSum(is) !== null]]),
    ...rules.flatMap(([token, reads, writes], i) => [[`The token of rule ${i + 1}`, token, token.trim() !== ""], [`What ${token || "a token"} reads`, reads, readReads(reads) !== null], [`What ${token || "a token"} writes`, writes, readSum(writes) !== null]]),
  ];
  const [name, text] = fields.find(([, , good]) => !good) ?? ["A field", ""];
  return text.trim() ? `${name} cannot be read: “${text}”.` : `${name} is empty.`;
}

function rowsOf(rows, width) {
  return rows.filter((r) => Array.isArray(r) && r.length === width && r.every((c) => typeof c === "string")).slice(0, MAX_ROWS);
}

export function Page() {
  const [state, patch] = useUrlState("wiring", DEFAULTS);
  const request = useMemo(() => requestOf(state), [state]);
  const { reply: latest, error, current, of } = useReply("api/wiring", request, { delay: 60 });
  const reply = request && !error ? latest : null; // an earlier result says nothing of inputs that cannot be used
  const tokens = rowsOf(state.tokens, 2), rules = rowsOf(state.rules, 3);
  const edit = (name, rows) => (i, column, text) => patch({ [name]: rows.map((r, j) => (i === j ? r.map((c, k) => (k === column ? text : c)) : r)) });
  const unmet = (i) => (reply && current && request && reply.rules.length === rules.length && !reply.rules[i].met ? reply.rules[i].why || "this rule is not met" : "");
  const unparsed = request ? null : { message: `${unreadable(tokens, rules)} Each field takes a sum of named vectors, such as u_d + u_b or 2 u_a - 1/2 u_c.` };
  return html`
    <h1>Wiring</h1>
    <p class="lead">Tokens are sums of orthogonal vectors of length β. State which token reads which and what it writes,
      and get Q, K and V that do it, or a proof that there are none.</p>
    <${Share} name="wiring" python=${reply?.python} json=${reply && { request: JSON.parse(of), reply }} missing=${unparsed || error ? NOTHING : ""} onReset=${() => patch(DEFAULTS)} />
    <${Problem} error=${unparsed ?? error} />
    <div class="page wiring" aria-busy=${!current}>
      <div class="controls">
        <fieldset class="rows"><legend>Tokens</legend>
          ${tokens.map(([name, is], i) => html`<div class="line" key=${i}>
            <${Text} label=${`Name of token ${i + 1}`} value=${name} good=${name.trim() !== ""} onInput=${(t) => edit("tokens", tokens)(i, 0, t)} />
            <span>=</span>
            <${Text} label=${`What ${name} is`} value=${is} good=${readSum(is) !== null} onInput=${(t) => edit("tokens", tokens)(i, 1, t)} />
            <${Remove} label=${`Remove token ${name}`} many=${tokens.length} onClick=${() => patch({ tokens: tokens.filter((_, j) => j !== i) })} />
          </div>`)}
          <${Add} many=${tokens.length} onClick=${() => patch({ tokens: [...tokens, newToken(tokens)] })}>Add a token<//>
        </fieldset>
        <fieldset class="rows"><legend>Rules</legend>
          ${rules.map(([token, reads, writes], i) => html`<div class=${`line rule${unmet(i) ? " unmet" : ""}`} key=${i}>
            <${Text} label=${`Rule ${i + 1}, token`} value=${token} good=${tokens.some(([n]) => n.trim() === token.trim())} onInput=${(t) => edit("rules", rules)(i, 0, t)} />
            <span>reads</span>
            <${Text} label=${`What ${token} reads`} value=${reads} good=${readReads(reads) !== null} onInput=${(t) => edit("rules", rules)(i, 1, t)} />
            <${Remove} label=${`Remove the rule of ${token}`} many=${rules.length} onClick=${() => patch({ rules: rules.filter((_, j) => j !== i) })} />
            <span class="second">writes</span>
            <${Text} className="last" label=${`What ${token} writes`} value=${writes} good=${readSum(writes) !== null} onInput=${(t) => edit("rules", rules)(i, 2, t)} />
            ${unmet(i) && html`<small class="reason">✗ ${subscripts(unmet(i))}</small>`}
          </div>`)}
          <${Add} many=${newRule(tokens, rules) ? rules.length : MAX_ROWS} onClick=${() => patch({ rules: [...rules, newRule(tokens, rules)] })}>Add a rule<//>
        </fieldset>
        <${Slider} name="beta" label="β" hint="length of the vectors: scores grow as β²" value=${request?.beta ?? state.beta} min=${0.1} max=${20} log onInput=${(beta) => patch({ beta })} />
        <${Slider} name="tol" label="Tolerance at β = 1" hint="largest distance of the weights from the rules" value=${request?.tol ?? state.tol} min=${1e-6} max=${0.5} log onInput=${(tol) => patch({ tol })} />
      </div>
      ${request && !error && !reply && html`<p class="quiet" role="status">computing …</p>`}
      ${reply && html`<div class="views">
        ${reply.possible ? html`
          <section>
            <h2>${subscripts(title(reply))}</h2>
            <${Outcomes} rules=${reply.rules} tol=${request?.tol ?? state.tol} />
            <div class="heats">
              <${HeatMap} title="Weights" matrix=${reply.weights} rows=${reply.names} columns=${reply.names} top=${1} />
              <${HeatMap} title="Outputs, as coefficients" matrix=${reply.outputs} rows=${reply.names} columns=${reply.vectors} />
            </div>
          </section>
          <section>
            <h2>Q, K and V do not depend on β</h2>
            <div class="heats">
              <${HeatMap} title="Q" matrix=${reply.Q} columns=${reply.vectors} />
              <${HeatMap} title="K" matrix=${reply.K} columns=${reply.vectors} />
              <${HeatMap} title="V" matrix=${reply.V} rows=${reply.vectors} columns=${reply.vectors} />
            </div>
            <p class="quiet" data-picture>At β = 1, ${withFullStop(reply.says)}</p>
          </section>` : html`<div class=${`found ${outcome(reply).look}`}><p><b>${outcome(reply).word}</b> ${outcome(reply).sentence}</p>
            ${[...new Set(reply.rules.map((r) => r.why).filter(Boolean))].map((why) => html`<p>${subscripts(withFullStop(why))}</p>`)}
            <p class="quiet" data-picture>The certificate says: ${subscripts(withFullStop(reply.says))}</p></div>`}
        <section><h2>Derivation</h2>
          <${Lines} lines=${reply.derivation} />
        </section>
      </div>`}
    </div>
    ${reply?.possible && html`<${Announcement}>${title(reply)}<//>`}
    <${Code} python=${reply?.python} />`;
}

/** What is known where no matrices were found: that there are none, none up to some norm, or none with the exact ratios. */
function outcome(reply) {
  if (reply.excludes_every_wiring || reply.rules.some((r) => r.why)) return { look: "no", word: "✗ Impossible", sentence: "No Q and K satisfy these rules." };
  if (reply.status === "out of reach") return { look: "no", word: "✗ Out of reach", sentence: "Within a bound on W = QᵀK, nothing satisfies these rules." };
  return { look: "maybe", word: "± Not found", sentence: "No Q and K within the tolerance were found; what is proved holds for the exact ratios of the rules only." };
}

const ALIKE = 1.1; // the largest weight of a row, times its length, below which the row is called about equal

/** What each token reads: every term of its rule, and every token with as much weight. */
export function title(reply) {
  const wanted = Object.fromEntries(reply.rules.map((r) => [r.token, Object.keys(r.wanted)]));
  const parts = reply.names.map((name, i) => {
    const weights = reply.weights[i], own = (wanted[name] ?? []).map((other) => reply.names.indexOf(other));
    const least = own.length ? Math.min(...own.map((j) => weights[j])) : 0.999 * Math.max(...weights);
    const named = weights.map((w, j) => j).filter((j) => own.includes(j) || weights[j] >= least).sort((a, b) => weights[b] - weights[a]);
    if (!own.length && named.length === weights.length && weights.length > 1) return `${name} reads all tokens equally`;
    if (weights.length > 1 && Math.max(...weights) * weights.length < ALIKE) return `${name} reads all tokens about equally`;
    return `${name} reads ${listed(named.map((j) => `${reply.names[j]} (${number(weights[j], 3)})`))}`;
  });
  return parts.join("; ");
}

/** The outcome of each rule at the current β. */
function Outcomes({ rules, tol }) {
  return html`<ul class="outcomes">${rules.map((r) => html`<li class=${r.met ? "met" : "unmet"} key=${r.token}>
    <b>${r.met ? "✓" : "✗"}</b> ${subscripts(`${r.token}: `)}${r.met
      ? html`weights ${atMost(r.distance, 3)} from the rule, in total variation (tolerance ${number(tol)})`
      : subscripts(r.why)}</li>`)}</ul>`;
}

/** A token with a name and a vector of its own. */
function newToken(tokens) {
  const text = tokens.map(([, is]) => is).join(" ");
  const name = [1, 2, 3, 4, 5, 6, 7].map((i) => `x_${i}`).find((n) => !tokens.some(([other]) => other === n));
  const letter = [..."abcdefghijklmnop"].find((l) => !text.includes(`u_${l}`)) ?? "e";
  return [name, `u_${letter}`];
}

/** A rule for a token that has none: it reads and writes as another token does, which one V can do. Null if all have one. */
function newRule(tokens, rules) {
  const free = tokens.find(([name]) => !rules.some(([token]) => token === name));
  if (!free) return null;
  const twin = rules.find(([token]) => tokens.some(([name, is]) => name === token && is.trim() === free[1].trim()));
  const [, reads, writes] = twin ?? rules[0] ?? [null, free[0], free[1]];
  return [free[0], reads, writes];
}

function Text({ label, value, good, onInput, className = "" }) {
  return html`<input class=${`text ${className}`} aria-label=${label} value=${value} aria-invalid=${!good} maxlength="200" autocomplete="off" spellcheck=${false} onInput=${(e) => onInput(e.target.value)} />`;
}

function Remove({ label, many, onClick }) {
  return html`<button class="link" aria-label=${label} disabled=${many < 2} onClick=${onClick}>remove</button>`;
}

function Add({ many, onClick, children }) {
  return html`<div><button class="link" disabled=${many >= MAX_ROWS} onClick=${onClick}>${children}</button></div>`;
}

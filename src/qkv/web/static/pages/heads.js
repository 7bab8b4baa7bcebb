// Heads page: what the heads of a model look up in a text, head by head and token by token.
import { html, useEffect, useMemo, useState } from "../lib/html.js";
import { useFetch, useReply } from "../lib/api.js";
import { Arcs, ShadedText, decoded, strongest, tokenText, weightText } from "../lib/arcs.js";
import { HeadGrid, Legend, kindText } from "../lib/head_grid.js";
import { number, percentage, provedPercentage } from "../lib/numbers.js";
import { capitalise } from "../lib/text.js";
import { Announcement, Facts, Figure, Problem, Select, Slider, useId } from "../lib/controls.js";
import { useRemembered, useUrlState } from "../lib/route.js";
import { Code, NOTHING, Share } from "../lib/export.js";
import { HeadsTable } from "./heads_table.js";

const DEFAULTS = { model: "", text: "", layer: -1, head: -1, token: -1, bits: 4 };
const MAX_TEXT = 20000, SHOWN = 8;

export function Page() {
  const [state, patch] = useUrlState("heads", DEFAULTS);
  const { reply: known, error: unknown } = useFetch("api/heads/models");
  const models = known?.models ?? [];
  const gone = known && state.model && !models.some((m) => m.name === state.model) ? state.model : null;
  const model = gone ? undefined : models.find((m) => m.name === state.model) ?? models[0];
  const text = state.text || model?.text || "";
  const { reply: survey, error, current } = useReply("api/heads/survey", model ? { model: model.name, text } : null, { patience: 120000 });
  const fits = survey && model && current && !error; // after a refusal the last reply is for another text
  const [layer, head] = fits ? chosenHead(survey, state) : [0, 0];
  const place = { model: model?.name, text, layer, head };
  const weights = useReply("api/heads/weights", fits ? place : null, { patience: 120000 });
  const drawn = fits && weights.reply && weights.of && sameHead(weights, place) ? weights.reply : null;
  const matrix = useMemo(() => drawn && decoded(drawn.weights), [drawn]);
  const token = fits ? chosenToken(survey, state, matrix) : 0;
  const seen = useReply("api/heads/token", drawn ? { ...place, token, bits: clamp(state.bits, 1, 8), harden: false } : null, { patience: 120000, delay: 120 });
  const detail = drawn && seen.reply?.token === token && seen.reply.layer === layer && seen.reply.head === head ? seen.reply : null;
  const onHead = (l, h) => patch({ layer: l, head: h });
  const onToken = (t) => patch({ token: t });
  // What does not depend on the token is the same object while the token moves, and Preact leaves it alone.
  const grid = useMemo(() => fits && html`<${HeadGrid} survey=${survey} layer=${layer} head=${head} onHead=${onHead} /><${Legend} rows=${survey.rows} />`, [fits, survey, layer, head]);
  const table = useMemo(() => fits && html`<${HeadsTable} survey=${survey} text=${text} layer=${layer} head=${head} onHead=${onHead} measurable=${model.kind !== "example"} />`, [fits, survey, text, layer, head, model?.kind]);
  const python = fits ? (detail ?? drawn ?? survey).python : null;
  const summary = fits && survey.rows[layer * survey.heads + head];
  return html`
    <h1>Heads</h1>
    <p class="lead">A head of a model is a lookup: every token asks with a query, and the arcs show which tokens it reads. Choose a text, a head and a token.</p>
    <${Share} name="heads" python=${python} json=${fits ? { survey, head: drawn, token: detail } : null} pictured=${Boolean(matrix)} missing=${gone ? "Choose a model first." : error || unknown ? NOTHING : ""} onReset=${() => patch(DEFAULTS)} />
    <${Problem} error=${unknown ?? error ?? weights.error} />
    ${gone && html`<p class="problem" role="alert">There is no model ${gone} on this server. Only models that were named when it was started can be opened.</p>`}
    ${known && models.every((m) => m.kind === "example") && html`<p class="quiet naming" data-fact="naming">This is a built-in example, whose heads qkv designed. To look at a model of your own, name its folder when you start the server: <code>qkv serve --model FOLDER</code></p>`}
    <div class="page heads" aria-busy=${!current || (fits && !drawn)}>
      <div class="controls">
        <${Select} label="Model" name="model" value=${model?.name ?? ""} options=${[...(gone ? [["", "choose a model …"]] : []), ...models.map((m) => [m.name, m.name])]}
          onInput=${(name) => name && patch({ ...DEFAULTS, model: name, text: state.text })} />
        <${TextBox} text=${text} busy=${!current} onText=${(t) => patch({ text: t, token: -1 })} />
        ${grid}
      </div>
      <div class="views">
        ${!survey && !error && model && html`<p class="quiet" role="status">opening ${model.name} …</p>`}
        ${summary && html`<section class="one-head" data-head=${`${layer}.${head}`}>
          <h2 data-fact="title" data-picture>${`Head ${layer}.${head}, ${kindText(summary)}`}</h2>
          <${Slider} name="token" label="Token that looks" value=${token} min=${0} max=${survey.tokens.length - 1} step=${1} onInput=${onToken} />
          ${matrix && html`<${ShadedText} tokens=${survey.tokens} weights=${matrix} token=${token} onToken=${onToken} />
            <div class="pair looking"><${Figure} caption="Left: the token that looks. Right: what it looks at. Point at a token, or choose one. The 12 largest weights of a token are drawn, from 0.02 on.">
              <${Arcs} tokens=${survey.tokens} weights=${matrix} token=${token} onToken=${onToken} label=${arcsLabel(survey, matrix, layer, head, token)} /><//>
            <${TokenDetail} ...${{ survey, matrix, token, detail, place, bits: clamp(state.bits, 1, 8), onBits: (bits) => patch({ bits }) }} /></div>`}
          <${HeadFacts} summary=${summary} place=${drawn && place} />
        </section>`}
      </div>
    </div>
    ${table}
    ${matrix && html`<${Announcement}>${arcsLabel(survey, matrix, layer, head, token)}<//>`}
    <${Code} python=${python} />`;
}

const clamp = (x, low, high) => Math.min(Math.max(Math.round(x), low), high);

function sameHead({ of }, place) {
  const sent = JSON.parse(of);
  return sent.model === place.model && sent.text === place.text && sent.layer === place.layer && sent.head === place.head;
}

/** The head of the state if there is one, else the first one that looks something up most clearly. */
export function chosenHead(survey, { layer, head }) {
  if (layer >= 0 && layer < survey.layers && head >= 0 && head < survey.heads) return [layer, head];
  const order = ["induction", "previous token", "duplicate"];
  const rank = (row) => (order.includes(row.kind) ? order.indexOf(row.kind) : order.length);
  const best = survey.rows.reduce((a, b) => (rank(b) < rank(a) || (rank(b) === rank(a) && b.score > a.score) ? b : a));
  return [best.layer, best.head];
}

/** The token of the state if there is one, else the last one whose largest weight is on another token than the first and itself. */
export function chosenToken(survey, { token }, matrix) {
  const n = survey.tokens.length;
  if (token >= 0 && token < n) return token;
  if (!matrix) return n - 1;
  for (let i = n - 1; i > 0; i--) {
    const [best] = strongest(matrix, n, i, { most: 1 });
    if (best && best[0] !== 0 && best[0] !== i && best[1] >= 0.3) return i;
  }
  return n - 1;
}

function arcsLabel(survey, matrix, layer, head, token) {
  const n = survey.tokens.length, named = (j) => `${j} “${tokenText(survey.tokens[j])}”`;
  const read = strongest(matrix, n, token, { most: 3, least: 0.01 }).map(([j, w]) => `${named(j)} ${weightText(w)}`);
  return `Head ${layer}.${head}: token ${named(token)} looks at ${read.join(", ") || "many tokens a little"}`;
}

/** The text, which is looked at when the box is left or the button pressed. */
function TextBox({ text, busy, onText }) {
  const id = useId("text");
  const [draft, setDraft] = useRemembered("heads text", { of: text, text });
  const typed = draft.of === text ? draft.text : text;
  const send = (event) => { event?.preventDefault(); if (typed.trim() && typed !== text) { setDraft({ of: typed, text: typed }); onText(typed); } };
  return html`<form class="field heads-text" onSubmit=${send}><label for=${id}>Text</label>
    <textarea id=${id} rows="4" maxlength=${MAX_TEXT} value=${typed} onInput=${(e) => setDraft({ of: text, text: e.target.value })} spellcheck="false"></textarea>
    <div class="row"><button class="act main" disabled=${!typed.trim() || typed === text}>Look</button>${busy && html`<span class="quiet" role="status">looking …</span>`}</div></form>`;
}

/** The largest weights of the chosen token, how firmly it looks, what rounding does to it, and a hardened query. */
function TokenDetail({ survey, matrix, token, detail, place, bits, onBits }) {
  const [asked, setAsked] = useState(null);
  const key = JSON.stringify({ ...place, token, bits });
  const hard = useReply("api/heads/token", asked === key ? { ...place, token, bits, harden: true } : null, { patience: 120000 });
  const hardened = asked === key && hard.current && hard.reply?.hardened ? hard.reply : null;
  const n = survey.tokens.length, full = hardened ?? detail;
  const rows = full?.looked_up.slice(0, SHOWN) ?? strongest(matrix, n, token, { most: SHOWN, least: 0 }).map(([j, w]) => ({ position: j, token: survey.tokens[j], weight: w }));
  const rounded = full?.spread.length > 0, exact = full?.spread.find((one) => one.bits === bits);
  const all = matrix.slice(n * token, n * token + n).reduce((sum, w) => sum + w, 0); // less than 1 where a sink takes weight
  const rest = all - rows.reduce((sum, row) => sum + row.weight, 0), left = (full?.looked_up.length ?? n) - rows.length;
  return html`<div class="token-detail" aria-busy=${!full}>
    <h3>What “${tokenText(survey.tokens[token])}” looks at</h3>
    <table class="looked"><thead><tr><th>token</th><th class="n">score</th><th class="n">weight</th>${rounded && html`<th class="n">${bits} bits</th><th class=${`n${hardened ? " off-phone" : ""}`} title="predicted standard deviation of the weight">±</th>`}${hardened && html`<th class="n">hardened</th>`}</tr></thead>
      <tbody>${rows.map((row) => html`<tr key=${row.position}><th scope="row"><span class="place">${row.position}</span> ${tokenText(row.token)}</th><td class="n">${row.score === undefined ? "…" : row.score.toFixed(2)}</td>
        <td class="n weight" style=${{ "--weight": row.weight }} data-weight=${row.position}>${weightText(row.weight)}</td>
        ${rounded && html`<td class="n">${row.rounded === null ? "–" : weightText(row.rounded)}</td><td class=${`n${hardened ? " off-phone" : ""}`}>${row.spread === null ? "–" : deviation(row.spread)}</td>`}${hardened && html`<td class="n">${weightText(row.hardened)}</td>`}</tr>`)}</tbody></table>
    ${left > 0 && html`<p class="quiet">${left} more with ${weightText(Math.max(rest, 0))} together.</p>`}
    ${full && html`<${Facts} rows=${[
      full.firmly && ["how firmly", capitalise(full.firmly), "firmly"],
      exact && [`at ${bits} bits`, html`Its output moves by ${percent(exact.measured)} (predicted ${percent(exact.predicted)}), ${exact.same_top ? "the same token stays on top" : "another token comes on top"}`, "spread"],
      hardened && ["hardened query", capitalise(hardened.hardened.says), "hardened"],
    ]} />`}
    ${full?.note && html`<p class="quiet">${full.note}</p>`}
    ${rounded && html`<${Slider} name="bits" label="Bits of a key" value=${bits} min=${1} max=${8} step=${1} onInput=${onBits} />
      ${!hardened && html`<div class="row"><button class="act" disabled=${asked === key && !hard.current} onClick=${() => setAsked(key)}>Harden this query</button>
        <span class="quiet">${asked === key && !hard.error ? "searching, for some seconds …" : "a query with nearly the same weights, whose output rounding moves less"}</span></div>`}`}
    <${Problem} error=${asked === key ? hard.error : null} />
  </div>`;
}

const deviation = (x) => (x === 0 ? "0" : x < 0.0005 ? "< 0.001" : x.toFixed(3));
const percent = (x) => (x > 0 && x < 5e-5 ? "< 0.01 %" : `${number(100 * x, 3)} %`);

/** Firmness and bits of the whole head. */
function HeadFacts({ summary, place }) {
  const { reply, current, error } = useReply("api/heads/rounding", place, { patience: 120000, delay: 250 });
  const rows = place && current && reply?.layer === place.layer && reply.head === place.head ? reply.rows : null;
  return html`<div class="head-facts"><div>
      <h3>How firmly, over all tokens</h3>
      <${Facts} rows=${[
        ["averages", `${summary.effective.toFixed(1)} tokens`],
        ["margin", summary.margin === null ? "–" : `${summary.margin.toFixed(2)}, median`],
        ["radius", summary.radius === null ? "–" : html`${Math.floor(1000 * summary.radius) / 1000} of a key’s length: while every key moves by less, half of the tokens keep what they look at most`],
        ["reads", `${percentage(summary.reads)} of tokens put 90 % of their weight on one`],
      ]} /></div>
    <div aria-busy=${Boolean(place) && !rows && !error}><h3>How few bits</h3>
      ${rows ? html`<table class="looked bits"><thead><tr><th>bits</th><th class="n">error</th><th class="n">error predicted</th><th class="n">top stays</th><th class="n">stay predicted</th><th class="n">proved</th></tr></thead>
        <tbody>${rows.map((row) => html`<tr key=${row.bits}><th scope="row">${row.bits}</th><td class="n">${percent(row.measured)}</td><td class="n">${percent(row.predicted)}</td><td class="n">${percentage(row.survives)}</td>
          <td class="n">${percentage(row.survives_predicted)}</td><td class="n">${provedPercentage(row.certified)}</td></tr>`)}</tbody></table>
        <p class="quiet">Keys are rounded channel by channel. Error: of the output, as a share of it. Top stays: tokens that look most at the same token as before. Proved: those for which rounding cannot change that.</p>`
      : html`<p class="quiet" role="status">rounding …</p>`}
      <${Problem} error=${error} /></div></div>`;
}

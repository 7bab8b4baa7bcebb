// Knowledge page: ask a trained model, and see how far its answer can be trusted.
import { html, useCallback, useEffect, useMemo, useState } from "../lib/html.js";
import { ask, useReply } from "../lib/api.js";
import { Arcs, decoded, strongest, tokenText, weightText } from "../lib/arcs.js";
import { HeatMap } from "../lib/heatmap.js";
import { capitalise, withFullStop } from "../lib/text.js";
import { number, share } from "../lib/numbers.js";
import { Facts, Figure, Problem, Select, Announcement, useId } from "../lib/controls.js";
import { useRemembered, useUrlState } from "../lib/route.js";
import { Code, Share } from "../lib/export.js";
import { Shares } from "../lib/weights.js";
import { Training } from "./training.js";

const DEFAULTS = { model: "", q: "" };
const BADGES = { remembered: ["✓", "proved"], "made up": ["✗", "refuted"], unsure: ["?", "conditional"] };
const SIGNALS = {
  probability: "probability of the answer", log_probability: "log-probability", margin: "lead over the next answer", entropy: "entropy of the answers",
  agreement: "sampled answers that agree", probe: "the name was in the training text", right: "similar answers that are right",
};

export function Page() {
  const [state, patch] = useUrlState("knowledge", DEFAULTS);
  const [models, setModels] = useState({ list: null, error: null, runs: "" });
  const [found, setFound] = useState({ reply: null, error: null, busy: false });
  const [draft, setDraft] = useRemembered("question", { q: state.q, text: state.q });
  const typed = draft.q === state.q ? draft.text : state.q; // what was typed since the last question
  const setTyped = (text) => setDraft({ q: state.q, text });
  const [hints, setHints] = useState({ model: "", list: [] });
  const field = useId("question");

  const refresh = useCallback(() => ask("api/models").then(
    (reply) => setModels({ list: reply.models, error: null, runs: reply.runs }),
    (error) => setModels({ list: null, error, runs: "" }),
  ), []);
  useEffect(() => { refresh(); }, []);
  const known = models.list ?? [];
  // A link may name a model that is gone; no other one answers in its place.
  const gone = models.list && state.model && !known.some((m) => m.name === state.model) ? state.model : null;
  const model = gone ? undefined : state.model || known[0]?.name;
  const source = known.find((m) => m.name === model)?.source;
  useEffect(() => {
    if (!models.list || !model || !state.q) return undefined;
    const control = new AbortController();
    setFound((old) => ({ ...old, busy: true, error: null }));
    ask("api/ask", { model, question: state.q }, { signal: control.signal }).then(
      (reply) => setFound({ reply, error: null, busy: false }),
      (error) => error.name === "AbortError" || setFound({ reply: null, error, busy: false }),
    );
    return () => control.abort();
  }, [models.list && model, source, state.q]); // a model that was kept has another folder in its code

  const send = (event) => { event.preventDefault(); if (typed.trim()) { setDraft({ q: typed.trim(), text: typed.trim() }); patch({ q: typed.trim() }); } };
  const offer = (result) => setHints({ model: result.model, list: result.questions ?? [] });
  const onTrained = (result) => refresh().then(() => { patch({ model: result.model }); offer(result); });
  const offered = hints.model === model ? hints.list : [];
  const reply = model && !found.error ? found.reply : null;
  return html`
    <h1>Knowledge</h1>
    <p class="lead">Ask a model that was trained on facts. A badge judges whether it remembers the answer or makes it up, and gives the evidence.</p>
    <${Share} name="knowledge" python=${reply?.python} json=${reply} missing=${reply || found.busy ? "" : known.length ? "Ask something first." : "Train a model first."} />
    <${Problem} error=${models.error} />
    <div class="knowledge">
      <section class="asking">
        ${gone && html`<p class="problem" role="alert">There is no model ${gone} on this server. A model that is trained on the page and not kept is gone when its server stops.</p>`}
        ${models.list && !known.length && html`<div class="empty"><p><b>There is no model yet.</b> Train a small one below, which takes a minute or two,
          or name one when you start the server: <code>qkv serve --model NAME=FOLDER</code></p></div>`}
        ${known.length > 0 && html`<form class="ask" onSubmit=${send}>
          <label for=${field}>Question</label>
          <input id=${field} class="text" value=${typed} maxlength="500" placeholder="Where was … born?" onInput=${(e) => setTyped(e.target.value)} />
          <button class="act main" disabled=${!typed.trim() || found.busy || !model}>Ask</button>
          <${Select} label="Model" name="model" value=${model ?? ""} options=${[...(gone ? [["", "choose a model …"]] : []), ...known.map((m) => [m.name, `${m.name}: ${m.n_layer} ${m.n_layer === 1 ? "layer" : "layers"}, ${thousands(m.parameters)} parameters`])]} onInput=${(name) => name && patch({ model: name })} />
        </form>
        ${model && html`<${Keeping} model=${known.find((m) => m.name === model)} runs=${models.runs} onKept=${refresh} />`}
        <${Hints} hints=${offered} onPick=${(q) => { setDraft({ q, text: q }); patch({ q }); }} />`}
        <${Problem} error=${found.error} />
        ${found.busy && html`<p class="quiet" role="status">asking …</p>`}
        ${reply && html`<${Answer} reply=${reply} model=${model} stale=${found.busy} hint=${offered.find((h) => h.question === reply.question)} />`}
      </section>
      <${Training} onDone=${onTrained} onFound=${offer} hasModels=${known.length > 0} />
    </div>
    ${reply && html`<${Announcement}>${withFullStop(`${reply.answer || "No answer"}${reply.badge ? `: ${reply.badge}` : ""}`)} ${capitalise(reply.why)}<//>`}
    <${Code} python=${reply?.python} />`;
}

/** The signals behind a badge, as names and values. */
function evidenceOf(reply) {
  return Object.entries(reply.evidence).filter(([, v]) => typeof v === "number").map(([name, v]) => [SIGNALS[name] ?? name.replace(/_/g, " "), name === "probability" ? share(v) : number(v), name]);
}

/** Where a model stays; one that was trained here is gone with the server unless it is kept. */
function Keeping({ model, runs, onKept }) {
  const [state, setState] = useState({ busy: false, error: null });
  if (model?.source === "kept") return html`<p class="quiet keeping" data-fact="kept">This model is kept in <code>${model.folder}</code>. Its link works on every server that is started with this folder.</p>`;
  if (model?.source !== "trained here") return null;
  const keep = async () => {
    setState({ busy: true, error: null });
    try {
      await ask(`api/models/${encodeURIComponent(model.name)}/keep`, {});
      await onKept();
      setState({ busy: false, error: null });
    } catch (error) {
      setState({ busy: false, error });
    }
  };
  return html`<div class="found maybe keeping"><p>This model will be gone when the server stops, and so will its link and its Python code.</p>
    <div class="row"><button class="act" disabled=${state.busy} onClick=${keep}>Keep this model</button><span class="quiet">in <code>${runs}</code>, which <code>qkv serve --runs</code> chooses</span></div>
    <${Problem} error=${state.error} /></div>`;
}

/** Example questions of a training job, by what the model has read about the person. */
function Hints({ hints, onPick }) {
  const kinds = [...new Set(hints.map((h) => h.kind))];
  return hints.length === 0 ? null : html`<div class="hints">${kinds.map((kind) => html`<div><span class="quiet">${capitalise(kind)}</span>
    <ul>${hints.filter((h) => h.kind === kind).slice(0, 3).map((h) => html`<li><button class="link" onClick=${() => onPick(h.question)}>${h.question}</button></li>`)}</ul></div>`)}</div>`;
}

/** Which heads attend most to a name, as a title; heads that agree to the two digits shown are not told apart. */
export function attendsMost(heads, name) {
  const most = Math.max(...heads.map((h) => h.weight)), shown = number(most, 2);
  if (!(most > 0)) return `No head attends to “${name}”`;
  const first = heads.filter((h) => number(h.weight, 2) === shown), size = most < 5e-3 ? ` (${shown})` : ""; // the map shows less as 0
  if (first.length === 1) return `Layer ${first[0].layer}, head ${first[0].head} attends most to “${name}”${size}`;
  if (first.length === heads.length) return `All heads attend about equally to “${name}”${size}`;
  if (first.length > 3) return `${first.length} heads attend about equally, and most, to “${name}”${size}`;
  const names = first.map((h) => `layer ${h.layer}, head ${h.head}`);
  return `${capitalise(`${names.slice(0, -1).join("; ")} and ${names.at(-1)}`)} attend about equally, and most, to “${name}”${size}`;
}

/** What the tokens of the question look at, in the head that attends most to the name or in another one. */
function QuestionArcs({ model, reply }) {
  const order = [...reply.heads].sort((a, b) => a.layer - b.layer || a.head - b.head);
  const first = reply.heads.reduce((a, b) => (a && a.weight >= b.weight ? a : b), null) ?? { layer: 0, head: 0 };
  const [name, setName] = useState(`${first.layer}.${first.head}`);
  const [layer, head] = name.split(".").map(Number);
  const { reply: found, error, current } = useReply("api/ask/attention", { model, question: reply.question, layer, head });
  const weights = useMemo(() => found && decoded(found.weights), [found]);
  const n = found?.tokens.length ?? 0;
  const [token, setToken] = useState(null);
  const place = token ?? n - 1;
  if (error) return null; // a perceiver, whose tokens do not look at tokens
  const most = weights ? strongest(weights, n, place, { most: 1, least: 0 })[0] : null;
  const label = most && `Head ${name}: “${tokenText(found.tokens[place])}” looks most at “${tokenText(found.tokens[most[0]])}”, with weight ${weightText(most[1])}`;
  return html`<div class="asked-head" aria-busy=${!current}>
    ${order.length > 0 && html`<${Select} label="What the question’s tokens look at, in head" name="asked-head" value=${name} onInput=${setName}
      options=${order.map((h) => [`${h.layer}.${h.head}`, `layer ${h.layer}, head ${h.head}: ${number(h.weight, 2)} on the name`])} />`}
    ${weights && html`<${Figure} title=${label} caption="Left: the token that looks; the last one stands where the answer begins. Right: what it looks at."><${Arcs} tokens=${found.tokens} weights=${weights} token=${place} onToken=${setToken} label=${label} /><//>`}
  </div>`;
}

function Answer({ reply, model, stale, hint }) {
  const [sign, tone] = BADGES[reply.badge] ?? [];
  const layers = Math.max(0, ...reply.heads.map((h) => h.layer)) + 1, wide = Math.max(0, ...reply.heads.map((h) => h.head)) + 1;
  const grid = Array.from({ length: layers }, (_, l) => Array.from({ length: wide }, (_, h) => reply.heads.find((x) => x.layer === l && x.head === h)?.weight ?? 0));
  const top = reply.heads.reduce((a, b) => (a && a.weight >= b.weight ? a : b), null);
  return html`<div class=${`answer${stale ? " stale" : ""}`}>
    <p class="quiet asked">${reply.question}</p>
    <p class="said"><span data-fact="answer">${reply.answer || "(no answer)"}</span> ${sign && html`<span class=${`badge ${tone}`} data-fact="badge">${sign} ${reply.badge}</span>`}</p>
    ${hint && html`<p class="check">${hint.kind === "not read about" ? `The training text says nothing about this person; the right answer is ${withFullStop(hint.answer)}`
      : `The training text says ${hint.answer}: the answer is ${hint.answer === reply.answer ? "right" : "wrong"}.`}</p>`}
    ${reply.guarantee && html`<p class="quiet" data-fact="guarantee">${withFullStop(`Answers with this badge are ${reply.guarantee}`)}</p>`}
    <p class="why">${capitalise(reply.why)}</p>
    <div class="pair">
      <${Figure} title="Possible answers"><${Shares} rows=${reply.alternatives.map((a) => [a.text || "(no answer)", a.probability])} /><//>
      ${top && html`<div class="stack"><${HeatMap} title=${attendsMost(reply.heads, reply.name)} matrix=${grid} top=${1}
        rows=${grid.map((_, l) => `layer ${l}`)} columns=${grid[0].map((_, h) => `head ${h}`)} /></div>`}
    </div>
    <${QuestionArcs} key=${`${model} ${reply.question}`} model=${model} reply=${reply} />
    <details class="evidence"><summary>Evidence</summary><${Facts} rows=${evidenceOf(reply)} /></details>
  </div>`;
}

function thousands(x) {
  return x >= 1e6 ? `${number(x / 1e6, 3)} M` : x >= 1e3 ? `${number(x / 1e3, 3)} k` : String(x);
}

// Claims page: an editor, and a verdict with its reason beside each claim while it is edited.
import { html, useEffect, useMemo, useRef, useState } from "../lib/html.js";
import { useFetch, useReply } from "../lib/api.js";
import { Lines } from "../lib/derivation.js";
import { capitalise, subscripts } from "../lib/text.js";
import { Maths } from "../lib/maths.js";
import { Problem, Select, Announcement } from "../lib/controls.js";
import { useUrlState } from "../lib/route.js";
import { Code, Share } from "../lib/export.js";
import { textPicture } from "../lib/picture_text.js";

// The first of claim_examples.py: the server decides it before the page asks.
const START = `\`\`\`claim average
given k_1..k_n orthonormal, n >= 3, t > 0
let   q = t*(k_a + k_b)
then  alpha_a = exp(t)/(2*exp(t) + n - 2)
then  c -> (v_a + v_b)/2 as t -> oo
then  alpha_a > 0.49
then  c -> v_a as t -> oo
\`\`\`
`;
const DEFAULTS = { text: START, open: "" };
export const SIGNS = { proved: "✓", holds: "≈", conditional: "±", refuted: "✗", malformed: "?", undecided: "…" };
const TONES = { proved: "text-proved", holds: "text-proved", conditional: "text-conditional", refuted: "text-refuted", malformed: "quiet", undecided: "quiet" };
const MEANINGS = {
  proved: "true for all values in range", holds: "tested on numbers, not proved", conditional: "true under the condition given", refuted: "false",
  malformed: "could not be read", undecided: "neither proved nor refuted",
};
/** The forms of the language, by the word that begins the line. */
const SYNTAX = [
  ["given", "what is known", ["k_1..k_n orthonormal, n >= 3, t > 0", "k_1..k_n free, q free", "k_i ~ N(mu_i, eps*I)", "k_j'q - k_i'q >= m for i != j"]],
  ["let", "what a name stands for", ["q = t*(k_a + k_b)", "q_1 = t*k_a, q_2 = t*k_b"]],
  ["then", "a statement, which gets a verdict", ["alpha_a > 1/2", "c -> v_a as t -> oo", "sum_i alpha_i = 1", "alpha_i < alpha_a for i != a", "Var[k_a'q] = 2*t^2*eps", "c = v_a when t > 1"]],
];
const WORDS = [["k_a, v_a", "key and value of item a; i stands for every item"], ["alpha_a", "softmax weight of item a"], ["c", "the output, the sum of alpha_i v_i"], ["k_a'q", "inner product: the score of a"], ["oo", "infinity"]];

export function Page() {
  const [state, patch] = useUrlState("claims", DEFAULTS);
  const [text, setText] = useState(state.text);
  const { reply, error, busy, current } = useReply("api/check", useMemo(() => ({ text }), [text]), { delay: 300, patience: 4000 });
  const catalogue = useFetch("api/catalogue");
  const [asked, setAsked] = useState(null); // a document that would replace typed text
  useEffect(() => { if (state.text !== text) setText(state.text); }, [state.text]); // the address has changed
  const type = (value) => { setText(value); patch({ text: value }); };
  const verdicts = reply?.verdicts ?? [];
  const counts = Object.keys(SIGNS).map((kind) => [kind, verdicts.filter((v) => v.verdict === kind).length]).filter(([, many]) => many);
  const summary = counts.map(([kind, many]) => `${many} ${kind}`).join(", ");
  const documents = catalogue.reply?.documents ?? [];
  const examples = documents.filter((d) => d.kind === "example"), sheets = documents.filter((d) => d.kind === "answer sheet");
  const replace = (document) => { setAsked(null); type(document.text); patch({ open: "" }); };
  const choose = (name) => {
    const found = documents.find((d) => d.name === name);
    if (!found || found.text === text) return;
    if (text.trim() && text !== START && !documents.some((d) => d.text === text)) setAsked(found);
    else replace(found);
  };
  const picture = () => textPicture([{ text: `Claims about attention: ${summary}`, size: 17, weight: 600 },
    ...verdicts.flatMap((v) => [{ text: `${SIGNS[v.verdict]} ${v.verdict}: ${v.id}`, tone: TONES[v.verdict], weight: 600, gap: 14 },
      { text: v.says || v.id, mono: true, indent: 18 }, { text: capitalise(v.because), tone: "quiet", size: 13, indent: 18 }])]);
  return html`
    <h1>Claims</h1>
    <p class="lead">Is my answer right? State what attention does in one line: each <code>then</code> gets a verdict with its reason, and a derivation or a counterexample.</p>
    <${Share} name="claims" python=${reply?.python} json=${verdicts.length ? { text, ...reply } : null} missing=${reply && current && !verdicts.length ? "There are no claims." : ""} draw=${picture} onReset=${() => { setAsked(null); setText(START); patch(DEFAULTS); }} />
    <${Problem} error=${error} />
    <div class="claims">
      <div class="editing">
        <div class="topics" role="group" aria-label="Examples by topic"><span class="quiet">Examples</span>
          ${examples.map((d) => html`<button key=${d.name} class="topic" data-example=${d.name} aria-pressed=${d.text === text} onClick=${() => choose(d.name)}>${d.topic}</button>`)}</div>
        ${asked && html`<div class="found maybe" role="alertdialog" aria-label="Replace your text?"><p>“${asked.topic}” would replace the text that you have typed.</p>
          <div class="row"><button class="act main" onClick=${() => replace(asked)}>Replace it</button><button class="act" onClick=${() => setAsked(null)}>Keep my text</button></div></div>`}
        <${Editor} text=${text} verdicts=${current || !busy ? verdicts : []} onInput=${type} onPick=${(id) => patch({ open: id })} />
      </div>
      <div class="helping"><${Help} />
        ${sheets.length > 0 && html`<${Select} label="Whole answer sheets" name="catalogue" value="" onInput=${choose} options=${[["", "choose one …"], ...sheets.map((d) => [d.name, d.topic])]} />`}
      </div>
      <div class="verdicts" aria-busy=${!current}>
        <p class="count">${busy && !current ? "checking …" : summary || "This text contains no claims."}</p>
        ${reply && !reply.complete && html`<p class="quiet">The time limit for the whole text was reached; the remaining claims are undecided.</p>`}
        <ol>${verdicts.map((v) => html`<${Verdict} key=${v.id} verdict=${v} open=${state.open === v.id} stale=${!current}
          onToggle=${(open) => patch((old) => ({ open: open ? v.id : old.open === v.id ? "" : old.open }))} />`)}</ol>
      </div>
    </div>
    <${Announcement}>${busy ? "" : summary}<//>
    <${Code} python=${reply?.python} />`;
}

/** The language in short, beside the editor. */
function Help() {
  return html`<section class="syntax" aria-label="How to write a claim"><h2>How to write a claim</h2>
    <p class="quiet">A fenced block, <code>${"```claim name"}</code> to <code>${"```"}</code>, with lines that begin with one of three words. LaTeX between dollar signs works too.</p>
    <dl>${SYNTAX.map(([word, meaning, forms]) => html`<div key=${word}><dt><code>${word}</code> <span>${meaning}</span></dt><dd>${forms.map((form) => html`<code>${form}</code> `)}</dd></div>`)}</dl>
    <dl class="words">${WORDS.map(([name, meaning]) => html`<div key=${name}><dt><code>${name}</code></dt><dd>${meaning}</dd></div>`)}</dl>
  </section>`;
}

/** The text, with a sign for the verdict at the line of each statement. The field grows with its text, so that signs and lines stay aligned. */
function Editor({ text, verdicts, onInput, onPick }) {
  const field = useRef(null);
  const lines = text.split("\n").length;
  const byLine = new Map();
  for (const v of verdicts) byLine.set(v.line, [...(byLine.get(v.line) ?? []), v]);
  const onKeyDown = (event) => {
    if (event.key === "Escape") event.target.blur(); // lets the keyboard leave the field
  };
  return html`<div class="editor">
    <div class="gutter">${[...byLine].map(([line, found]) => html`<span key=${line} style=${{ top: `calc(${line - 1} * var(--row))` }}>
      ${found.slice(0, 1).map((v) => html`<button class=${`sign ${v.verdict}`} title=${`${v.verdict}: ${v.because}`} aria-label=${`Line ${line}: ${v.verdict}. Show why`} onClick=${() => onPick(v.id)}>${SIGNS[v.verdict]}</button>`)}
    </span>`)}</div>
    <textarea ref=${field} aria-label="Claims" spellcheck=${false} autocomplete="off" wrap="off" rows=${Math.max(lines + 1, 9)} value=${text} onKeyDown=${onKeyDown} onInput=${(e) => onInput(e.target.value)}></textarea>
  </div>`;
}

/** The statement and the reason are always shown; the derivation or the counterexample opens. */
function Verdict({ verdict: v, open, stale, onToggle }) {
  const place = useRef(null);
  useEffect(() => { if (open) place.current.scrollIntoView({ block: "nearest" }); }, [open]);
  const [reason, tried] = splitReason(v.because_pieces);
  const more = [v.derivation.length > 0 && `derivation (${v.derivation.length} ${v.derivation.length === 1 ? "step" : "steps"})`, v.counterexample && "numbers"].filter(Boolean).join(" and ");
  return html`<li ref=${place} class=${`verdict ${v.verdict}${stale ? " stale" : ""}`}>
    <p class="head"><span class="word" title=${MEANINGS[v.verdict]}>${SIGNS[v.verdict]} ${v.verdict}</span> <span class="says" data-says=${v.says || v.id}><${Sentence} pieces=${v.verdict === "malformed" ? [{ text: v.says || v.id, latex: "" }] : v.says_pieces} code=${v.verdict === "malformed"} /></span></p>
    <p class="because"><${Sentence} pieces=${capitalised(reason)} />${tried && html` <span class="quiet">${tried}</span>`}</p>
    ${v.kernel && html`<p class="kernel">${v.kernel.accepted ? `Checked by ${v.kernel.checker} ${v.kernel.form}` : `By qkv alone: ${v.kernel.because}`}</p>`}
    ${more && html`<details open=${open} onToggle=${(e) => e.target.open !== open && onToggle(e.target.open)}>
      <summary>${capitalise(more)}</summary>
      ${v.derivation.length > 0 && html`<${Lines} lines=${v.derivation} />`}
      ${v.counterexample && html`<pre tabindex="0" aria-label="Numbers">${v.counterexample}</pre>`}
    </details>`}
    <p class="quiet where">${v.id}, line ${v.line}</p>
  </li>`;
}

/** A sentence with its formulas set. */
function Sentence({ pieces, code = false }) {
  if (code) return html`<code>${pieces.map((p) => p.text).join("")}</code>`;
  return pieces.map((p, i) => (p.latex ? html`<${Maths} key=${i} tex=${p.latex} text=${p.text.replace(/^\$|\$$/g, "")} />` : subscripts(p.text)));
}

/** The reason, and how many instances were tried, which stands apart. */
function splitReason(pieces) {
  const last = pieces.at(-1);
  const found = last && !last.latex && /^(.*?);? ?(\d+ of \d+ numerical instances agree, none disagrees)$/.exec(last.text);
  return found ? [[...pieces.slice(0, -1), { text: `${found[1]}.`, latex: "" }], `${capitalise(found[2])}.`] : [pieces, ""];
}

function capitalised(pieces) {
  return pieces.map((p, i) => (i === 0 && !p.latex ? { ...p, text: capitalise(p.text) } : p));
}

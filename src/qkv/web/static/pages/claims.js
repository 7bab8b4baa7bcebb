// Claims page: an editor, and a verdict beside each claim while it is edited.
import { html, useEffect, useMemo, useRef, useState } from "../vendor/htm-preact.js";
import { useFetch, useReply } from "../lib/api.js";
import { Lines } from "../lib/derivation.js";
import { subscripts } from "../lib/text.js";
import { Problem, Select, Announcement } from "../lib/controls.js";
import { useUrlState } from "../lib/route.js";
import { Code, Share, listing } from "../lib/export.js";

const START = `\`\`\`claim average
given k_1..k_n orthonormal, n >= 3, t > 0
let   q = t*(k_a + k_b)
then  alpha_a = exp(t)/(2*exp(t) + n - 2)
then  c -> (v_a + v_b)/2 as t -> oo
then  alpha_a > 0.49
then  c -> v_a as t -> oo
\`\`\`
`;
const EXAMPLE = "first example";
const DEFAULTS = { text: START, open: "" };
export const SIGNS = { proved: "✓", holds: "≈", conditional: "±", refuted: "✗", malformed: "?", undecided: "…" };
const TONES = { proved: "proved", holds: "proved", conditional: "conditional", refuted: "refuted", malformed: "malformed", undecided: "malformed" };

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
  const documents = [...(catalogue.reply?.documents ?? []), ...(catalogue.reply ? [{ name: EXAMPLE, text: START }] : [])];
  const replace = (document) => { setAsked(null); type(document.text); patch({ open: "" }); };
  const choose = (name) => {
    const found = documents.find((d) => d.name === name);
    if (!found || found.text === text) return;
    if (text.trim() && !documents.some((d) => d.text === text)) setAsked(found);
    else replace(found);
  };
  return html`
    <h1>Claims</h1>
    <p class="lead">State what attention does. Each <code>then</code> gets a verdict, with its reason and, where there is one, a derivation or a counterexample.</p>
    <${Share} name="claims" python=${reply?.python} json=${reply && { text, ...reply }} draw=${() => listing(verdicts.map((v) => [`${SIGNS[v.verdict]} ${v.verdict}`, TONES[v.verdict], v.says || v.id, v.because]))} />
    <${Problem} error=${error} />
    <div class="claims">
      <div class="editing">
        <${Select} label="Start from" name="catalogue" value="" onInput=${choose}
          options=${[["", documents.length ? "the catalogue …" : "…"], ...documents.map((d) => [d.name, titleOf(d)])]} />
        ${asked && html`<div class="found maybe" role="alertdialog" aria-label="Replace your text?"><p>“${titleOf(asked)}” would replace the text that you have typed.</p>
          <div class="row"><button class="act main" onClick=${() => replace(asked)}>Replace it</button><button class="act" onClick=${() => setAsked(null)}>Keep my text</button></div></div>`}
        <${Editor} text=${text} verdicts=${current || !busy ? verdicts : []} onInput=${type} onPick=${(id) => patch({ open: id })} />
        <p class="quiet">Claims are fenced blocks in a Markdown text. <code>given</code> lists assumptions, <code>let</code> defines, <code>then</code> makes a statement.</p>
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

function titleOf(document) {
  return document.name === EXAMPLE ? "the first example" : /^#\s+(.+)$/m.exec(document.text)?.[1] ?? document.name;
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
    <textarea ref=${field} aria-label="Claims" spellcheck=${false} autocomplete="off" wrap="off" rows=${Math.max(lines + 1, 12)} value=${text} onKeyDown=${onKeyDown} onInput=${(e) => onInput(e.target.value)}></textarea>
  </div>`;
}

function Verdict({ verdict: v, open, stale, onToggle }) {
  const place = useRef(null);
  useEffect(() => { if (open) place.current.scrollIntoView({ block: "nearest" }); }, [open]);
  return html`<li ref=${place} class=${`verdict ${v.verdict}${stale ? " stale" : ""}`}>
    <details open=${open} onToggle=${(e) => e.target.open !== open && onToggle(e.target.open)}>
      <summary><span class="word">${SIGNS[v.verdict]} ${v.verdict}</span> <span class="says">${v.says || v.id}</span></summary>
      <p>${subscripts(v.because)}</p>
      ${v.derivation.length > 0 && html`<${Lines} lines=${v.derivation} />`}
      ${v.counterexample && html`<pre tabindex="0">${v.counterexample}</pre>`}
      <p class="quiet">${v.id}, line ${v.line}</p>
    </details>
  </li>`;
}

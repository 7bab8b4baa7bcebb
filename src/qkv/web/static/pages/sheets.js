// Sheets page: an answer sheet as its author wrote it comes back with the feedback in place.
import { html, useEffect, useMemo, useRef, useState } from "../lib/html.js";
import { ask, useFetch, useReply } from "../lib/api.js";
import { Lines } from "../lib/derivation.js";
import { capitalise, subscripts } from "../lib/text.js";
import { Maths } from "../lib/maths.js";
import { Announcement, Problem, Select } from "../lib/controls.js";
import { useRemembered, useUrlState } from "../lib/route.js";
import { Code, Share } from "../lib/export.js";
import { textPicture } from "../lib/picture_text.js";

const DEFAULTS = { problem: "", open: "" };
const EMPTY = { text: null, file: "" }; // null: the example, which the server has
export const MAX_CHARACTERS = 200_000;
export const SIGNS = { right: "✓", limit: "→", wrong: "✗", choice: "·", not_read: "?", meets: "✓", misses: "✗", prose: "…", none: "–" };
const TONES = { right: "proved", meets: "proved", limit: "conditional", wrong: "refuted", misses: "refuted", choice: "malformed", not_read: "malformed", prose: "malformed", none: "malformed" };
const MEANINGS = {
  right: "holds for all values in range", limit: "holds in the limit that is named", wrong: "false in every reading of it", choice: "defines, chooses or states a goal",
  not_read: "not understood, or readable in ways that disagree: look at it yourself", meets: "does what the question asks for", misses: "does not do what the question asks for",
  prose: "an answer in words, which is not decided", none: "no answer was found",
};
const QUIET = ["right", "limit", "choice"]; // their reasons open on a click
const FOLDED = 8, KEPT = 2; // a longer run of lines without feedback is folded, but for some at its ends
const PASTED_SHEET = 200; // characters; what is shorter is a correction
const FORMS = ".tex,.md,.markdown,.txt,.typ,.ipynb,.html,.htm,text/*";

const named = (verdict) => (verdict === "none" ? "no answer" : verdict.replace("_", " "));

export function Page() {
  const [state, patch] = useUrlState("sheets", DEFAULTS);
  const [draft, setDraft] = useRemembered("sheet", EMPTY);
  const [sent, setSent] = useState(draft);
  const [refused, setRefused] = useState(null);
  const [over, setOver] = useState(false);
  const start = useFetch("api/sheets");
  const example = start.reply && { text: start.reply.example, file: start.reply.file };
  const shown = draft.text === null ? example ?? { text: "", file: "" } : draft;
  const graded = sent.text === null ? example : sent;
  const body = useMemo(() => (graded && graded.text.trim() ? { text: graded.text, file: graded.file, problem: state.problem || null } : null), [graded?.text, graded?.file, state.problem]);
  const { reply, error, busy, current } = useReply("api/grade", body, { patience: 60_000 });
  const give = (sheet) => {
    if (sheet.text.length > MAX_CHARACTERS) return setRefused({ message: `The sheet has ${sheet.text.length.toLocaleString("en")} characters; at most ${MAX_CHARACTERS.toLocaleString("en")} can be graded here. Use qkv grade for larger ones.` });
    setRefused(null);
    setDraft(sheet);
    return setSent(sheet);
  };
  const take = async (file) => {
    if (!file) return;
    const text = await file.text();
    if (text.includes("\u0000")) setRefused({ message: `${file.name} is not text: give the source, in LaTeX, Markdown, Typst or plain text.` });
    else give({ text: text.replace(/\r\n?/g, "\n"), file: file.name });
  };
  const drop = (event) => { event.preventDefault(); setOver(false); take(event.dataTransfer.files[0]); };
  const open = useRef(null), pasted = useRef(false);
  const type = (text) => {
    const sheet = { text, file: draft.text === null ? "" : draft.file };
    if (pasted.current) give(sheet); // a sheet that was pasted is graded at once
    else setDraft(sheet);
    pasted.current = false;
  };
  const stale = graded !== null && shown.text !== graded?.text;
  const problems = start.reply?.problems ?? [];
  const feedback = body && reply;
  const picture = () => reply && textPicture([{ text: `Feedback on ${reply.file || "a sheet"}: ${reply.summary}`, size: 17, weight: 600 },
    ...[...reply.answers, ...reply.statements.filter((s) => !QUIET.includes(s.verdict))].flatMap((one) => [
      { text: `${SIGNS[one.verdict]} ${named(one.verdict)}${one.line ? `, line ${one.line}` : ""}: ${one.asked ?? ""}`, tone: `text-${TONES[one.verdict]}`, weight: 600, gap: 14 },
      { text: one.formula ?? one.given, mono: true, indent: 18 }, { text: capitalise(one.because), tone: "quiet", size: 13, indent: 18 }])]);
  return html`
    <h1>Sheets</h1>
    <p class="lead">Is my answer right? Paste or drop your answers on the attention-exploration problems as you wrote them: they come back with feedback in place, and every reason. It is feedback, not a mark; nothing leaves this machine.</p>
    <${Share} name="sheet" python=${feedback?.python} json=${feedback} missing=${start.reply && !body ? "There is no sheet." : ""} draw=${picture} onReset=${() => { setRefused(null); setDraft(EMPTY); setSent(EMPTY); patch(DEFAULTS); }}>
      <button disabled=${!feedback} onClick=${() => download(body).catch(setRefused)}>Save as a page</button>
    <//>
    <section class=${`giving${over ? " over" : ""}`} aria-label="Your sheet" onDragOver=${(e) => { e.preventDefault(); setOver(true); }} onDragLeave=${() => setOver(false)} onDrop=${drop}>
      <div class="field"><label for="sheet-text">Your sheet ${shown.file && html`<span class="quiet">(${shown.file})</span>`}</label>
        <textarea id="sheet-text" spellcheck=${false} autocomplete="off" rows="9" placeholder="Paste LaTeX, Markdown, Typst or plain text, or drop a file here" value=${shown.text}
          onKeyDown=${(e) => { if (e.key === "Enter" && (e.ctrlKey || e.metaKey)) give(shown); if (e.key === "Escape") e.target.blur(); }}
          onPaste=${(e) => { pasted.current = (e.clipboardData?.getData("text") ?? "").length >= PASTED_SHEET; }} onInput=${(e) => type(e.target.value)}></textarea></div>
      <div class="row">
        <button class="act main" disabled=${!shown.text.trim()} onClick=${() => give(shown)}>Give feedback</button>
        <button class="act" onClick=${() => open.current.click()}>Open a file</button>
        <input ref=${open} hidden type="file" accept=${FORMS} onChange=${(e) => { take(e.target.files[0]); e.target.value = ""; }} />
        ${draft.text !== null && html`<button class="act" onClick=${() => { setRefused(null); setDraft(EMPTY); setSent(EMPTY); }}>Show the example</button>`}
        <${Select} label="Problem" name="problem" value=${state.problem} onInput=${(problem) => patch({ problem })} options=${[["", "recognise it"], ...problems.map((p) => [p.id, `${p.title}, ${p.id}`])]} />
      </div>
      <p class="hint">Ctrl+Enter gives feedback too. For a whole class: <code>qkv grade sheets/*.tex --html class.html</code></p>
    </section>
    <${Problem} error=${refused ?? error ?? start.error} />
    <div class="graded" aria-busy=${Boolean(body) && !current && !error}>
      ${!body ? start.reply && html`<p class="quiet">There is no text yet.</p>` : busy && !current ? html`<p class="count" role="status">Reading the sheet and deciding each formula …</p>` : null}
      ${feedback && html`<${Feedback} grade=${reply} stale=${stale || !current} open=${state.open} onOpen=${(key) => patch((old) => ({ open: old.open === key ? "" : key }))} />`}
    </div>
    <${Announcement}>${feedback && current ? `${reply.summary}` : ""}<//>
    <${Code} python=${feedback?.python} />`;
}

/** The page that qkv grade --html writes. */
async function download(body) {
  const response = await fetch("api/grade/report", { method: "POST", headers: { "content-type": "application/json" }, body: JSON.stringify(body) });
  if (!response.ok) return ask("api/grade/report", body); // throws the refusal
  const link = Object.assign(document.createElement("a"), { href: URL.createObjectURL(await response.blob()), download: "feedback.html" });
  link.click();
  setTimeout(() => URL.revokeObjectURL(link.href), 10000);
  return null;
}

/** Summary and notation, the answers, and the sheet with its notes. */
function Feedback({ grade, stale, open, onOpen }) {
  const first = [...grade.answers.filter((a) => a.verdict === "misses"), ...grade.statements.filter((s) => s.verdict === "wrong")]
    .filter((one) => one.follows_from === null && one.line).sort((p, q) => p.line - q.line)[0];
  return html`<div class=${`feedback${stale ? " stale" : ""}`}>
    <div class="overview">
      <h2>Answers</h2>
      <p class="count">${grade.summary} ${first && html`<button class="link" onClick=${() => show(first.line)}>Look at line ${first.line} first</button>`}</p>
      ${stale && html`<p class="quiet">This is for the text before your last changes.</p>`}
      ${grade.problem && html`<p class="quiet">Problem: ${grade.problem}</p>`}
      ${grade.notation.length > 0 && html`<p class="quiet">Read ${grade.notation.map(([letter, role]) => `${letter} as ${role}`).join(", ")}</p>`}
      ${grade.remarks.map((remark) => html`<p class="quiet">${remark}</p>`)}
      <ol class="answers">${grade.answers.map((a, i) => html`<${AnswerNote} key=${i} answer=${a} linked />`)}</ol>
    </div>
    <div class="annotated"><h2>${grade.file || "The sheet"}</h2><${Sheet} grade=${grade} open=${open} onOpen=${onOpen} /></div>
  </div>`;
}

/** The lines with their notes; long runs of lines without any are folded. */
function Sheet({ grade, open, onOpen }) {
  const rows = useMemo(() => rowsOf(grade), [grade]);
  return html`<ol class="sheet">${rows.map((row) => (row.folded
    ? html`<${Fold} key=${`fold ${row.folded[0].number}`} lines=${row.folded} />`
    : html`<${Line} key=${row.key} row=${row} open=${open} onOpen=${onOpen} />`))}</ol>`;
}

/** Lines with notes, and what stands between them. */
export function rowsOf(grade) {
  const notes = new Map();
  for (const one of [...grade.answers.map((a) => ({ answer: a, line: a.line })), ...grade.statements.map((s) => ({ statement: s, line: s.line }))]) {
    if (one.line) notes.set(one.line, [...(notes.get(one.line) ?? []), one]);
  }
  const rows = [];
  let quiet = [];
  const flush = () => {
    const head = rows.length ? KEPT : 0;
    if (quiet.length <= FOLDED) rows.push(...quiet.map(plain));
    else rows.push(...quiet.slice(0, head).map(plain), { folded: quiet.slice(head, -KEPT) }, ...quiet.slice(-KEPT).map(plain));
    quiet = [];
  };
  const plain = ({ number, text }) => ({ key: `${number} ${text.length}`, number, text, notes: [] });
  for (const line of grade.lines) {
    if (!notes.has(line.number)) { quiet.push(line); continue; }
    flush();
    rows.push({ key: `line ${line.number}`, ...line, notes: notes.get(line.number) });
    notes.delete(line.number);
  }
  flush();
  return rows;
}

function Fold({ lines }) {
  return html`<li class="fold"><details><summary>lines ${lines[0].number} to ${lines.at(-1).number}</summary>
    <ol class="sheet">${lines.map((line) => html`<li key=${line.number}><span class="number">${line.number}</span><code class="source">${line.text || "\u200b"}</code></li>`)}</ol></details></li>`;
}

function Line({ row, open, onOpen }) {
  const statements = row.notes.filter((n) => n.statement).map((n) => n.statement);
  const quiet = statements.filter((s) => QUIET.includes(s.verdict));
  const counts = QUIET.map((kind) => [kind, quiet.filter((s) => s.verdict === kind).length]).filter(([, many]) => many).map(([kind, many]) => `${many} ${kind === "limit" ? "in a limit" : kind === "choice" && many > 1 ? "choices" : kind}`).join(", ");
  const key = `q${row.number}`;
  return html`<li id=${row.notes.length ? `line-${row.number}` : null}><span class="number">${row.number}</span>
    <code class="source">${row.text ? marked(row.text, statements) : "\u200b"}</code>
    ${row.notes.length > 0 && html`<ul class="notes">
      ${row.notes.filter((n) => n.answer).map((n, i) => html`<${AnswerNote} key=${`a${i}`} answer=${n.answer} />`)}
      ${statements.filter((s) => !QUIET.includes(s.verdict)).map((s, i) => html`<${StatementNote} key=${i} statement=${s} />`)}
      ${quiet.length > 0 && html`<li><details open=${open === key} onToggle=${(e) => e.target.open !== (open === key) && onOpen(key)}><summary>${counts}: how ${quiet.length > 1 ? "they were" : "it was"} read</summary>
        <ul class="notes">${quiet.map((s, i) => html`<${StatementNote} key=${i} statement=${s} />`)}</ul></details></li>`}
    </ul>`}
  </li>`;
}

/** The text of a line, its formulas underlined by verdict. */
function marked(text, statements) {
  const parts = [];
  let at = 0;
  for (const s of statements) {
    const formula = s.formula.trim().split("\n")[0].trim();
    const found = formula ? text.indexOf(formula, at) : -1;
    if (found < 0) continue;
    parts.push(text.slice(at, found), html`<mark class=${TONES[s.verdict]} title=${named(s.verdict)}>${formula}</mark>`);
    at = found + formula.length;
  }
  return [...parts, text.slice(at)];
}

function AnswerNote({ answer: a, linked = false }) {
  return html`<li class=${`note ${TONES[a.verdict]}`} data-part=${linked ? a.part : null}>
    <p><${Word} verdict=${a.verdict} /> <b>${a.part}</b> <${Sentence} pieces=${a.asked_pieces} /> ${linked && a.line > 0 && html`<button class="link" onClick=${() => show(a.line)}>line ${a.line}</button>`}</p>
    ${a.given && html`<p class="written"><${Written} text=${a.given} latex=${a.latex} /></p>`}
    <${Reason} of=${a} />
    <${Reading} claim=${a.claim} summary="The goal with this answer put in" />
  </li>`;
}

function StatementNote({ statement: s }) {
  return html`<li class=${`note ${TONES[s.verdict]}`}>
    <p class="written"><${Word} verdict=${s.verdict} /> <${Written} text=${s.formula} latex=${s.latex} /></p>
    <${Reason} of=${s} />
    <${Reading} claim=${s.claim} summary="How it was read" />
    ${s.readings.map((reading) => html`<${Reading} claim=${reading} summary="Another reading, which disagrees" />`)}
    ${s.derivation.length > 0 && html`<details><summary>Derivation, ${s.derivation.length} ${s.derivation.length === 1 ? "step" : "steps"}</summary><${Lines} lines=${s.derivation} /></details>`}
  </li>`;
}

function Word({ verdict }) {
  return html`<b class=${`word ${TONES[verdict]}`} title=${MEANINGS[verdict]}>${SIGNS[verdict]} ${named(verdict)}</b>`;
}

/** What the author wrote: words stay words, a formula is set. */
function Written({ text, latex }) {
  const words = /[A-Za-z]{4,},? +[A-Za-z]{2,}/.test(text.replace(/\\[A-Za-z]+(\{[^{}]*\})?/g, ""));
  if (text.includes("$")) return text.split("$").map((part, i) => (i % 2 ? html`<${Maths} key=${i} tex=${part} text=${part} />` : part));
  return words || !/[\\_^=<>+]/.test(latex) ? subscripts(text) : html`<${Maths} tex=${latex.replace(/&/g, " ")} text=${text} />`;
}

function Reason({ of }) {
  if (!of.because && of.follows_from === null) return null;
  const pieces = of.because_pieces.map((p, i) => (i === 0 && !p.latex && /^(a|[a-z]{2,})[ ,:]/.test(p.text) ? { ...p, text: capitalise(p.text) } : p));
  return html`<p class="because">${of.follows_from !== null && html`<button class="link" onClick=${() => show(of.follows_from)}>Follows from line ${of.follows_from}</button>${of.because ? ": " : ""}`}
    <${Sentence} pieces=${pieces} /></p>`;
}

/** A sentence with its formulas set. */
function Sentence({ pieces }) {
  return pieces.map((p, i) => (p.latex ? html`<${Maths} key=${i} tex=${p.latex} text=${p.text.replace(/^\$|\$$/g, "")} />` : subscripts(p.text)));
}

function Reading({ claim, summary }) {
  return claim ? html`<details><summary>${summary}</summary><pre tabindex="0" aria-label=${summary}>${claim}</pre></details>` : null;
}

/** Scroll to a line of the annotated sheet. */
function show(line) {
  const place = document.getElementById(`line-${line}`);
  if (!place) return;
  place.scrollIntoView({ block: "center", behavior: matchMedia("(prefers-reduced-motion: reduce)").matches ? "auto" : "smooth" });
  place.setAttribute("tabindex", "-1");
  place.focus({ preventScroll: true });
}

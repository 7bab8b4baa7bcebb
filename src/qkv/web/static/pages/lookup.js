// Lookup page: weights, output and leak of a query, and the design of a query for wanted weights.
import { html, useMemo, useState } from "../lib/html.js";
import { ask, useReply } from "../lib/api.js";
import { Chart, loadPlot } from "../lib/chart.js";
import { KEY_LAYOUTS, initialKeys, labelOf, valueOf } from "../lib/items.js";
import { KeySpace } from "../lib/keyspace.js";
import { atMost, listed, number, share, vector } from "../lib/numbers.js";
import { Box, Choice, Facts, Figure, Problem, Slider, Announcement } from "../lib/controls.js";
import { useUrlState } from "../lib/route.js";
import { Code, NOTHING, Share } from "../lib/export.js";
import { withFullStop } from "../lib/text.js";
import { Term } from "../lib/terms.js";
import { Blend } from "../lib/weights.js";
import { Path } from "./lookup_path.js";
import { Wanted, normalised } from "./wanted.js";

loadPlot().catch(() => {}); // loads while the first request is in flight

// `verb` is "copy" or "blend" after a query was designed for the wanted items, and empty otherwise.
const DEFAULTS = { layout: "ring", n: 6, moved: {}, query: [0.6, 0.95], scale: 4, wanted: { a: 1, b: 1 }, verb: "" };
const EXTENT = 2.4;
const MAX_SCALE = 200;

/** The items of a state. */
export function itemsOf(kind, n, moved) {
  const keys = initialKeys(kind, Math.max(3, Math.min(50, Math.round(n)))).map((key, i) => (isPoint(moved[labelOf(i)]) ? moved[labelOf(i)] : key));
  return { keys, values: keys.map((_, i) => valueOf(i)), labels: keys.map((_, i) => labelOf(i)) };
}

/** The request of a state. */
export function requestOf(state, items) {
  const wanted = normalised(state.wanted, items.labels);
  const query = isPoint(state.query) ? state.query : DEFAULTS.query;
  const scale = Math.min(Math.max(state.scale, 0), MAX_SCALE);
  return { ...items, query, scale, wanted: Object.keys(wanted).length ? wanted : null };
}

function isPoint(p) {
  return Array.isArray(p) && p.length === 2 && p.every(Number.isFinite);
}

export function Page() {
  const [state, patch] = useUrlState("lookup", DEFAULTS);
  const memory = useMemo(() => itemsOf(state.layout, state.n, state.moved), [state.layout, state.n, state.moved]);
  const { keys, values, labels } = memory;
  const request = useMemo(() => requestOf(state, memory), [state]);
  const wantedWeights = useMemo(() => normalised(state.wanted, labels), [state.wanted, labels]);
  const { reply, error, current, of } = useReply("api/lookup", request);
  const answered = useMemo(() => reply && JSON.parse(of), [reply]); // the request that the numbers on screen are about
  const names = Object.keys(wantedWeights), verb = names.length === 1 ? "copy" : "blend";
  const toDesign = verb === "copy" ? { ...memory, item: names[0] } : { ...memory, weights: wantedWeights };
  const designed = useReply(`api/design/${verb}`, state.verb && names.length ? toDesign : null);
  const design = state.verb && names.length && designed.current && !designed.error ? designed.reply : null;
  const applied = Boolean(design) && isDesigned(design, request);
  const [working, setWorking] = useState(null);

  const make = async () => {
    setWorking({ verb });
    try {
      const found = await ask(`api/design/${verb}`, toDesign);
      patch({ verb, ...stateOf(found.query) });
      setWorking(null);
    } catch (failure) {
      setWorking({ error: failure });
    }
  };
  const moveKey = (i, p) => patch((old) => ({ moved: { ...old.moved, [labels[i]]: p }, verb: "" }));
  const toggle = (i) => patch((old) => {
    const { [labels[i]]: had, ...rest } = old.wanted;
    return { wanted: had === undefined ? { ...rest, [labels[i]]: 1 } : rest, verb: "" };
  });
  const chosen = useMemo(() => Object.keys(wantedWeights).map((label) => labels.indexOf(label)), [wantedWeights, labels]);
  const shown = reply && reply.weights.length === labels.length ? reply : null;
  const most = shown ? shown.weights.indexOf(Math.max(...shown.weights)) : 0;
  // Drawn again only when one of these changes, not for every step of the scale.
  const space = useMemo(() => html`<${KeySpace} keys=${keys} labels=${labels} weights=${shown?.weights} query=${arrow(request.query)} wanted=${chosen}
    proof=${proofOf(design, keys, labels)} extent=${EXTENT} onQuery=${(query) => patch({ query })} onKey=${moveKey} onToggle=${toggle} />`,
  [keys, shown, state.query, chosen, design]);
  return html`
    <h1>Lookup</h1>
    <p class="lead">A <${Term} name="query" /> scores every <${Term} name="key" />: the <${Term} name="score" /> is k·q times the <${Term} name="scale" />. The softmax of the scores gives the <${Term} name="weight">weights<//>, and
      the <${Term} name="output" /> is the weighted average of the <${Term} name="value">values<//>. Drag the query, or choose what it should read.</p>
    <${Share} name="lookup" python=${design && (applied || !design.possible) ? design.python : reply?.python} json=${reply && !error ? { request: answered, reply, design } : null} missing=${error ? NOTHING : ""} onReset=${() => patch(DEFAULTS)} />
    <${Problem} error=${error} />
    <div class="page lookup" aria-busy=${!current}>
      <div class="controls">
        <${Slider} name="scale" label="Scale" hint="score = scale × k·q" value=${request.scale} min=${0.1} max=${MAX_SCALE} log zero onInput=${(scale) => patch({ scale })} />
        <div class="field"><span class="label">Query</span><div class="row two">
          <${Box} name="q1" label="Query, first entry" value=${request.query[0]} min=${-1e6} max=${1e6} onInput=${(x) => patch({ query: [x, request.query[1]] })} />
          <${Box} name="q2" label="Query, second entry" value=${request.query[1]} min=${-1e6} max=${1e6} onInput=${(x) => patch({ query: [request.query[0], x] })} />
        </div></div>
        <${Wanted} wanted=${state.wanted} weights=${wantedWeights} labels=${labels} onChange=${(wanted) => patch({ wanted, verb: "" })} />
        <div class="row">
          <button class="act" disabled=${chosen.length !== 1} onClick=${make}>Copy this</button>
          <button class="act" disabled=${chosen.length < 2} onClick=${make}>Blend these</button>
          <span class="quiet" role="status">${working?.verb ? "designing …" : ""}</span>
        </div>
        <${Problem} error=${working?.error ?? (state.verb && designed.error)} />
        ${design && html`<${DesignResult} design=${design} weights=${wantedWeights} applied=${applied} onApply=${() => patch(stateOf(design.query))} />`}
        <hr />
        <${Choice} label="Keys" value=${state.layout} options=${KEY_LAYOUTS} onInput=${(kind) => patch({ layout: kind, moved: {}, verb: "" })} />
        <${Slider} name="n" label="Items" value=${labels.length} min=${3} max=${50} step=${1} onInput=${(n) => patch({ n, moved: {}, verb: "" })} />
      </div>
      <div class="views">
        <div class="pair">
          <${Figure} title=${excludes(design) ? `No query reads ${listed(Object.keys(wantedWeights))}${chosen.length > 1 ? " in exactly this proportion" : " alone"}` : shown ? highest(shown.weights, answered.scale) : "Keys and query"}
            caption=${html`The area of a dot grows with its weight. <span data-unpictured>Drag q or a key, or use the arrow keys; click a key to add it to the wanted items.</span>`}>
            ${space}
          <//>
          ${shown && html`<div class="stack">
            <${Figure} title=${heaviest(shown.weights, labels)}><${Path} request=${answered} reply=${shown} /><//>
            <${Figure} title="The output is the weighted average"><${Blend} weights=${shown.weights} values=${values} labels=${labels} output=${shown.output} />
              <${Facts} rows=${[["output", vector(shown.output), "output"], [html`<${Term} name="leak" />`, number(shown.leak), "leak"],
                shown.distance !== null && [html`<${Term} name="distance" /> from wanted`, number(shown.distance), "distance"]]} /><//>
          </div>`}
        </div>
        ${shown && html`<${LeakChart} reply=${shown} scale=${answered.scale} />`}
      </div>
    </div>
    ${shown && html`<${Announcement}>Weight of ${labels[most]}: ${share(shown.weights[most])}. Leak ${number(shown.leak)}.${shown.distance === null ? "" : ` Distance from wanted ${number(shown.distance)}.`}<//>`}
    <${Code} python=${design && (applied || !design.possible) ? design.python : reply?.python} />`;
}

/** A designed query as a state: the arrow shows its direction, its length becomes the scale, as far as the slider reaches. */
function stateOf(query) {
  const length = Math.hypot(...query), scale = Math.min(length, MAX_SCALE);
  return length > 0 ? { query: query.map((c) => c / scale), scale } : { query: [0, 0] };
}

/** Whether a request reads with the designed query: its certificate is about no other one. */
export function isDesigned(design, { query, scale }) {
  return design.query.every((c, i) => Math.abs(scale * query[i] - c) <= 4 * Number.EPSILON * Math.abs(c));
}

function excludes(design) {
  return Boolean(design && !design.possible && design.obstacle?.excludes_every_query);
}

/** Which keys have most weight, as a title. Weights that are equal as numbers do not tell that the scores are. */
export function highest(weights, scale) {
  const top = Math.max(...weights), many = weights.filter((w) => w === top).length;
  if (many === weights.length) return scale === 0 ? "At scale 0 every score is 0, so all weights are equal" : "All weights are equal";
  return many === 1 ? "The highest-scoring key has most weight" : `The ${many} highest-scoring keys have most weight`;
}

/** The items with most of the weight, as a title. */
export function heaviest(weights, labels) {
  const top = Math.max(...weights), named = labels.filter((_, i) => weights[i] > 0.5 * top);
  const held = weights.reduce((sum, w) => sum + (w > 0.5 * top ? w : 0), 0);
  if (named.length > 3) return named.length === labels.length ? `The weight is spread over all ${named.length} items` : `The weight is spread over ${named.length} items or more`;
  const names = listed(named);
  if (held > 0.9 && named.length > 1) return `The weight is on ${names}`;
  return held > 0.5 ? `Most of the weight is on ${names}` : `${names} ${named.length === 1 ? "has the largest weight" : "have the largest weights"}`;
}

/** A query beyond the edge of the plane is drawn at the edge, in its direction. */
function arrow(query) {
  const most = Math.max(...query.map(Math.abs)) / (0.97 * EXTENT);
  return most > 1 ? query.map((c) => c / most) : query;
}

/** What was found for the wanted weights. A certificate is shown while the query is the one that it is about. */
function DesignResult({ design, weights, applied, onApply }) {
  const combination = Object.entries(design.obstacle?.combination ?? {});
  const average = combination.map(([label, w]) => `${share(w)} ${label}`).join(" + ");
  const names = Object.keys(weights);
  const distance = atMost(design.bound);
  const again = !applied && html`<p>The query shown is another one. <button class="link" onClick=${onApply}>Show the designed query</button></p>`;
  if (design.possible) {
    if (applied) return html`<div class="found yes" role="status"><p><b>✓ Certified</b> The weights are at most ${distance} from the wanted ones, in total variation.</p></div>`;
    return html`<div class="found other" role="status">${again}</div>`;
  }
  const best = applied && html`<p>The best query found is shown; its weights are at most ${distance} from the wanted ones, in total variation.</p>`;
  if (!design.obstacle) {
    return html`<div class="found maybe" role="status"><p><b>± Not found</b> No query within ${number(design.tol)} of these weights was found; nothing is proved.</p>${best}${again}</div>`;
  }
  return html`<div class="found no" role="status"><p><b>✗ ${excludes(design) ? "Impossible" : "Out of reach"}</b> ${excludes(design) ? "No query has exactly these weights." : "Within a bound on its norm, no query has exactly these weights."}</p>${best}${again}
    ${average && html`<p>${names.length === 1 ? `${names[0]} is an average of other keys: ${average}.` : `An average of other keys, ${average}, lies on the ${names.length === 2 ? "line" : "plane"} through ${listed(names)}.`}
      ${" "}An average never scores more than the best of the keys in it.</p>`}
    <p class="quiet">The certificate says: ${withFullStop(design.obstacle.says)}</p></div>`;
}

/** The proof in the plane: a point that is an average of other keys, on the line or plane through the wanted ones. */
function proofOf(design, keys, labels) {
  if (design?.possible) return null;
  const parts = Object.entries(design?.obstacle?.combination ?? {}).map(([label, w]) => [labels.indexOf(label), w]);
  if (!parts.length) return null;
  return { at: [0, 1].map((axis) => parts.reduce((sum, [i, w]) => sum + w * keys[i][axis], 0)), parts };
}

/** What is known of the leak at large scales, as a title. */
export function leakTitle({ certified_scale: certified, limit, tol, wanted }, labels) {
  if (wanted.length === labels) return "Nothing can leak: every item is wanted";
  if (certified !== null) return `From scale ${atMost(certified)} on the leak is certified to be at most ${number(tol)}`;
  if (limit > 0) return `The leak never goes away: as the scale grows it tends to ${number(limit, 3)}`;
  return "The leak tends to 0 as the scale grows";
}

function LeakChart({ reply, scale }) {
  const smallest = reply.tol / 100;
  const points = reply.curve.scales.map((s, i) => ({ s, leak: Math.max(reply.curve.leaks[i], smallest) }));
  const now = { s: scale, leak: Math.max(reply.leak, smallest) };
  points.push(now);
  points.sort((p, q) => p.s - q.s);
  const certified = reply.certified_scale;
  const title = leakTitle(reply, reply.weights.length);
  const below = reply.leak < smallest ? " ↓" : ""; // the axis ends above it
  const options = (Plot, width) => ({
    height: 240, marginLeft: 48, marginRight: 20, marginBottom: 38, marginTop: 30,
    x: { label: "scale →", domain: [0, points.at(-1).s || 1], ticks: width < 420 ? 5 : 8 },
    y: { type: "log", label: "↑ leak", domain: [smallest, 1], ticks: 5, tickFormat: (v) => number(v, 1), clamp: true },
    marks: [
      Plot.ruleY([reply.tol], { stroke: "var(--line)", strokeDasharray: "3 3" }),
      certified !== null && Plot.ruleX([certified], { stroke: "var(--proved)", strokeWidth: 1.5 }),
      certified !== null && Plot.text([certified], { x: (d) => d, y: 1, text: () => `certified ${atMost(certified)}`, textAnchor: certified > 0.7 * points.at(-1).s ? "end" : "start",
        dx: certified > 0.7 * points.at(-1).s ? -6 : 6, dy: 8, fill: "var(--text-proved)" }),
      Plot.line(points, { x: "s", y: "leak", stroke: "var(--ink)", strokeWidth: 2, clip: true }),
      Plot.dot([now], { x: "s", y: "leak", r: 5, fill: "var(--accent)" }),
      Plot.text([now], { x: "s", y: "leak", text: () => `now ${number(reply.leak, 3)}${below}`, dx: scale > 0.7 * points.at(-1).s ? -9 : 9, dy: -9, textAnchor: scale > 0.7 * points.at(-1).s ? "end" : "start", fill: "var(--accent)",
        stroke: "var(--paper)", strokeWidth: 4 }),
    ],
  });
  return html`<${Figure} title=${title} caption=${`Leak: the weight on items other than ${listed(reply.wanted)}.`}>
    <${Chart} options=${options} of=${reply} height=${240} label=${`${title}. Now, at scale ${number(scale)}, it is ${number(reply.leak)}.`} /><//>`;
}

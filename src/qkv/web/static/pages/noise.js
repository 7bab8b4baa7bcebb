// Noise: the same blend read by one head, by one head for each item, and by the min-variance query, while a key varies.
import { html, useMemo, useState } from "../vendor/htm-preact.js";
import { useReply } from "../lib/api.js";
import { Chart, loadPlot } from "../lib/chart.js";
import { number, share, typed } from "../lib/numbers.js";
import { Facts, Figure, Problem, Slider, Spoken } from "../lib/parts.js";
import { useJob } from "../lib/jobs.js";
import { useLink } from "../lib/route.js";
import { Code, Share } from "../lib/save.js";

loadPlot().catch(() => {}); // it comes while the first numbers are asked for

const DEFAULTS = { n: 10, along: 0.5, isotropic: 1e-6, scale: 6, heads: 2, success: 0.1, samples: 200, seed: 0 };
const LIMITS = { n: [3, 100], along: [0, 10], isotropic: [0, 1], scale: [0, 50], heads: [2, 8], success: [0.001, 2], samples: [1, 2000], seed: [0, 2 ** 31 - 1] };
const INKS = ["one-head", "several-heads", "hardened"];
const PARTS = { 2: "½", 3: "⅓", 4: "¼", 5: "⅕", 6: "⅙", 7: "⅐", 8: "⅛" };
const WORDS = { 2: "half", 3: "a third", 4: "a quarter", 5: "a fifth", 6: "a sixth", 7: "a seventh", 8: "an eighth" };
const COUNTS = { 2: "two", 3: "three", 4: "four", 5: "five", 6: "six", 7: "seven", 8: "eight" };

/** The request that a state stands for: numbers of a link are brought into range, and some items stay unwanted. */
export function requestOf(state) {
  const kept = Object.entries(LIMITS).map(([name, [low, high]]) => [name, Math.min(Math.max(state[name], low), high)]);
  const request = Object.fromEntries(kept);
  for (const name of ["n", "heads", "samples", "seed"]) request[name] = Math.round(request[name]);
  request.heads = Math.min(request.heads, request.n - 1);
  return request;
}

export function Page() {
  const [state, patch] = useLink("noise", DEFAULTS);
  const request = useMemo(() => requestOf(state), [state]);
  const { reply, error, current } = useReply("api/noise", request);
  const set = (name) => (value) => patch({ [name]: value });
  const heads = reply?.arms[1].heads ?? request.heads;
  return html`
    <h1>Noise</h1>
    <p class="lead">Wanted is ${blend(heads)}, but the key of a varies. One head swings with it; ${COUNTS[heads]}, one for each item, mostly hold;
      the min-variance query repels the other keys instead, and hardly depends on the length of a.</p>
    <${Share} name="noise" python=${reply?.python} json=${reply && { request, reply }} />
    <${Problem} error=${error} />
    <div class="page noise" aria-busy=${!current}>
      <div class="controls">
        <${Slider} name="along" label="Noise of a along itself" hint="variance of the key's length" value=${request.along} min=${0.001} max=${10} log zero onInput=${set("along")} />
        <${Slider} name="isotropic" label="Noise everywhere" hint="variance of every key in every direction" value=${request.isotropic} min=${1e-8} max=${1} log zero onInput=${set("isotropic")} />
        <${Slider} name="scale" label="Scale" hint="gap in score between wanted and others" value=${request.scale} min=${0} max=${50} step=${0.1} onInput=${set("scale")} />
        <${Slider} name="heads" label="Heads" hint="one for each wanted item" value=${request.heads} min=${2} max=${Math.min(8, request.n - 1)} step=${1} onInput=${set("heads")} />
        <${Slider} name="n" label="Items" value=${request.n} min=${3} max=${100} step=${1} onInput=${set("n")} />
        <${Slider} name="success" label="Success within" hint="distance of the output from the wanted blend" value=${request.success} min=${0.001} max=${2} log onInput=${set("success")} />
        <${Slider} name="samples" label="Samples" value=${request.samples} min=${10} max=${2000} step=${10} onInput=${set("samples")} />
        <div class="row"><button class="act" onClick=${() => patch((old) => ({ seed: (old.seed + 1) % 2 ** 31 }))}>Draw again</button></div>
      </div>
      <div class="views">
        ${reply && html`
          <div class="arms">${reply.arms.map((arm, i) => html`<${Arm} key=${i} arm=${arm} token=${INKS[i]} heads=${heads} />`)}</div>
          <p class="quiet">${told(reply.arms)}</p>
          <${Against} arms=${reply.arms} />
          <${Study} request=${request} />`}
      </div>
    </div>
    ${reply && html`<${Spoken}>Variance: ${reply.arms.map((a) => `${a.name} ${number(a.variance, 3)}`).join(", ")}. Chance of success: ${reply.arms.map((a) => `${a.name} ${chance(a)}`).join(", ")}.<//>`}
    <${Code} python=${reply?.python} />`;
}

/** The wanted blend in words. */
function blend(heads) {
  const names = [..."abcdefgh"].slice(0, heads);
  if (heads === 2) return "half of a and half of b";
  return `${WORDS[heads]} each of ${names.slice(0, -1).join(", ")} and ${names.at(-1)}`;
}

/** What is exact in the pictures, and what is drawn. */
function told(arms) {
  const exact = arms.every((a) => ["exact", "quadrature"].includes(a.law.method)), sure = arms.every((a) => a.method !== "monte_carlo" && a.high - a.low < 2e-6);
  return `Bars: the ${exact ? "exact " : ""}distribution of the weight of a${exact ? "" : ", for some heads from thousands of readings"}. Dots: ${arms[0].weight_samples.length} drawn readings. `
    + `Mean${exact ? ", variance and bars" : " and variance"} are integrals, not estimates${sure ? ", and so is the chance of success." : "; the chance of success is known to within the ± beside it."}`;
}

function chance(arm) {
  return share(arm.probability);
}

/** One layout: the law as bars, the draws as dots under them. */
function Arm({ arm, token, heads }) {
  const height = matchMedia("(max-width: 46rem)").matches ? 180 : 250;
  const { edges, share: shares } = arm.law;
  const bars = shares.map((share, i) => ({ from: edges[i], to: edges[i + 1], share }));
  const dots = arm.weight_samples.map((w, i) => ({ w, down: -0.07 - 0.16 * ((i * 0.6180339887) % 1) }));
  const ink = `var(--${token})`, wanted = 1 / heads;
  const options = (Plot) => ({
    height, marginLeft: 34, marginRight: 10, marginBottom: 34, marginTop: 10,
    x: { domain: [-0.02, 1.02], ticks: [0, wanted, 1], tickFormat: (v) => ({ 0: "0", [wanted]: PARTS[heads], 1: "1" })[v], label: null, tickSize: 0 },
    y: { domain: [-0.26, 1], ticks: [0, 0.5, 1], tickFormat: (v) => ({ 0: "0", 0.5: "½", 1: "all" })[v], label: null, tickSize: 0 },
    marks: [
      Plot.ruleX([wanted], { stroke: "var(--line)", strokeDasharray: "3 3" }),
      Plot.dot(dots, { x: "w", y: "down", r: dots.length > 600 ? 1 : 1.8, fill: ink, fillOpacity: 0.55 }),
      Plot.rectY(bars, { x1: "from", x2: "to", y: "share", fill: ink, insetLeft: 0.5, insetRight: 0.5 }),
      Plot.ruleY([0], { stroke: "var(--quiet)" }),
    ],
  });
  const off = (arm.high - arm.low) / 2;
  return html`<${Figure} title=${arm.name} className="arm">
    <${Chart} options=${options} of=${arm} height=${height} label=${`${arm.name}: the weight of a has mean ${number(arm.mean)} and variance ${number(arm.variance)}`} />
    <${Facts} rows=${[
      ["mean", number(arm.mean), `${arm.name} mean`],
      ["variance", html`<b>${number(arm.variance)}</b>`, `${arm.name} variance`],
      ["success", html`<b>${chance(arm)}</b>${off < 1e-6 ? "" : html` <span class="quiet">± ${number(off, 1)}</span>`}`, `${arm.name} success`],
    ]} /><//>`;
}

/** The chance of success, side by side on one axis. */
function Against({ arms }) {
  const best = arms.reduce((a, b) => (b.probability > a.probability ? b : a));
  const rows = arms.map((a, i) => ({ name: a.name, p: a.probability, ink: `var(--${INKS[i]})` }));
  const flat = arms.every((a) => Math.abs(a.probability - best.probability) < 5e-4);
  const options = () => ({
    height: 118, marginLeft: 92, marginRight: 56, marginTop: 4, marginBottom: 26,
    x: { domain: [0, 1], ticks: [0, 0.5, 1], tickFormat: (v) => ({ 0: "never", 0.5: "half the time", 1: "always" })[v], label: null, tickSize: 0 },
    y: { domain: rows.map((r) => r.name), label: null, tickSize: 0, padding: 0.35 },
    color: { type: "identity" },
    marks: [
      globalThis.Plot.barX(rows, { x: () => 1, y: "name", fill: "var(--wash)" }),
      globalThis.Plot.barX(rows, { x: "p", y: "name", fill: "ink" }),
      globalThis.Plot.text(rows, { x: () => 1, y: "name", text: (r) => share(r.p), textAnchor: "start", dx: 8, fill: "var(--ink)" }),
    ],
  });
  const title = flat ? "All three succeed equally often" : `Success is likeliest with ${best.name === "min variance" ? "the min-variance query" : best.name}`;
  return html`<${Figure} title=${title}><${Chart} options=${options} of=${arms} height=${118} label=${`${title}: ${rows.map((r) => `${r.name} ${share(r.p)}`).join(", ")}`} /><//>`;
}

const STUDIED = [0.5, 1, 1.5, 2, 2.5, 3, 3.5, 4, 5, 6, 7, 8, 10, 12, 14, 16, 20, 24, 28, 32, 40, 50];

/** The same against scale: many readings at many scales, in a job of its own. */
function Study({ request }) {
  const [found, setFound] = useState(null);
  const keep = (result, settings) => setFound({ ...result, settings });
  const { job, error, start, cancel, running } = useJob("noise-study", { onDone: keep, onFound: keep });
  const { samples, scale, ...settings } = request;
  const points = (found?.curves ?? []).flatMap((c, i) => c.points.map((p) => ({ ...p, name: c.name, ink: `var(--${INKS[i]})` })));
  const options = (Plot, width) => ({
    height: 260, marginLeft: 44, marginRight: 92, marginTop: 28, marginBottom: 38,
    x: { type: "log", label: "scale →", ticks: (width < 420 ? [1, 10, 50] : [0.5, 1, 2, 5, 10, 20, 50]).filter((v) => points.some((p) => p.scale === v)), tickFormat: (v) => number(v) },
    y: { domain: [0, 1], label: "↑ chance of success", ticks: 5 },
    color: { type: "identity" },
    marks: [
      Plot.areaY(points, { x: "scale", y1: "low", y2: "high", z: "name", fill: "ink", fillOpacity: 0.2 }),
      Plot.line(points, { x: "scale", y: "probability", z: "name", stroke: "ink", strokeWidth: 2 }),
      Plot.text(found.curves.map((c, i) => ({ ...c.points.at(-1), name: c.name, ink: `var(--${INKS[i]})` })), { x: "scale", y: "probability", text: "name", textAnchor: "start", dx: 6, fill: "var(--ink)" }),
    ],
  });
  return html`<section class="study">
    <div class="row"><button class="act" disabled=${running} onClick=${() => start({ ...settings, scales: STUDIED, draws: 20000 })}>Study all scales</button>
      ${running && html`<button class="act" onClick=${cancel}>Cancel</button><progress max="1" value=${job.total ? job.done / job.total : 0} aria-label="Progress of the study"></progress>`}
      <span class="quiet" role="status">${running ? `${job.done} of ${job.total ?? STUDIED.length} scales` : found ? "" : "20,000 readings at each of 22 scales, beside this page"}</span></div>
    <${Problem} error=${error ?? job?.error} />
    ${found && html`<${Figure} title="What scale does to the chance of success" caption=${`For ${COUNTS[found.settings.heads]} wanted of ${found.settings.n} items, noise ${typed(found.settings.along)} along a and ${typed(found.settings.isotropic)} everywhere, success within ${typed(found.settings.success)}. Where a chance was sampled, a band shows its 95 % interval.`}>
      <${Chart} options=${options} of=${found} height=${260} label=${`Chance of success against scale for ${found.curves.map((c) => c.name).join(", ")}`} /><//>`}
  </section>`;
}

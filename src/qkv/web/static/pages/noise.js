// Noise page: the same average read by one head, by one head per item, and by the min-variance query, while a key varies.
import { html, useMemo, useState } from "../vendor/htm-preact.js";
import { useReply } from "../lib/api.js";
import { Chart, loadPlot } from "../lib/chart.js";
import { atMost, listed, number, share, typed } from "../lib/numbers.js";
import { Facts, Figure, Problem, Slider, Announcement } from "../lib/controls.js";
import { useJob } from "../lib/jobs.js";
import { useUrlState } from "../lib/route.js";
import { Code, Share } from "../lib/export.js";

loadPlot().catch(() => {}); // loads while the first request is in flight

const DEFAULTS = { n: 10, along: 0.5, isotropic: 1e-6, scale: 6, heads: 2, radius: 0.1, n_samples: 200, seed: 0 };
const LIMITS = { n: [3, 100], along: [0, 10], isotropic: [0, 1], scale: [0, 50], heads: [2, 8], radius: [0.001, 2], n_samples: [1, 2000], seed: [0, 2 ** 31 - 1] };
const INKS = ["one-head", "several-heads", "hardened"];
const PARTS = { 2: "½", 3: "⅓", 4: "¼", 5: "⅕", 6: "⅙", 7: "⅐", 8: "⅛" };
const WORDS = { 2: "half", 3: "a third", 4: "a quarter", 5: "a fifth", 6: "a sixth", 7: "a seventh", 8: "an eighth" };
const COUNTS = { 2: "two", 3: "three", 4: "four", 5: "five", 6: "six", 7: "seven", 8: "eight" };

/** The request of a state: numbers are brought into range, and at least one item is not wanted. */
export function requestOf(state) {
  const inRange = Object.entries(LIMITS).map(([name, [low, high]]) => [name, Math.min(Math.max(state[name], low), high)]);
  const request = Object.fromEntries(inRange);
  for (const name of ["n", "heads", "n_samples", "seed"]) request[name] = Math.round(request[name]);
  request.heads = Math.min(request.heads, request.n - 1);
  return request;
}

export function Page() {
  const [state, patch] = useUrlState("noise", DEFAULTS);
  const request = useMemo(() => requestOf(state), [state]);
  const { reply, error, current } = useReply("api/noise", request);
  const set = (name) => (value) => patch({ [name]: value });
  const heads = reply?.layouts[1].heads ?? request.heads;
  return html`
    <h1>Noise</h1>
    <p class="lead">We want ${blend(heads)}${variation(request)} One head scores all wanted items, ${COUNTS[heads]} heads read one item each, and the min-variance query
      is one head again. <span data-fact="comparison">${reply ? spread(reply.layouts) : ""}</span></p>
    <${Share} name="noise" python=${reply?.python} json=${reply && { request, reply }} onReset=${() => patch(DEFAULTS)} />
    <${Problem} error=${error} />
    <div class="page noise" aria-busy=${!current}>
      <div class="controls">
        <${Slider} name="along" label="Noise of a along itself" hint="variance of the length of the key" value=${request.along} min=${0.001} max=${10} log zero onInput=${set("along")} />
        <${Slider} name="isotropic" label="Isotropic noise" hint="variance of every key in every direction" value=${request.isotropic} min=${1e-8} max=${1} log zero onInput=${set("isotropic")} />
        <${Slider} name="scale" label="Scale" hint="gap in score between wanted and others" value=${request.scale} min=${0} max=${50} step=${0.1} onInput=${set("scale")} />
        <${Slider} name="heads" label="Heads" hint="one for each wanted item" value=${request.heads} min=${2} max=${Math.min(8, request.n - 1)} step=${1} onInput=${set("heads")} />
        <${Slider} name="n" label="Items" value=${request.n} min=${3} max=${100} step=${1} onInput=${set("n")} />
        <${Slider} name="radius" label="Radius of success" hint="largest distance of the output from the wanted average" value=${request.radius} min=${0.001} max=${2} log onInput=${set("radius")} />
        <${Slider} name="n_samples" label="Samples" value=${request.n_samples} min=${10} max=${2000} step=${10} onInput=${set("n_samples")} />
        <div class="row"><button class="act" onClick=${() => patch((old) => ({ seed: (old.seed + 1) % 2 ** 31 }))}>Sample again</button></div>
      </div>
      <div class="views">
        ${reply && html`
          <div class="layouts">${reply.layouts.map((layout, i) => html`<${Layout} key=${i} layout=${layout} token=${INKS[i]} heads=${heads} />`)}</div>
          <p class="quiet">${methods(reply.layouts)}</p>
          <${SuccessBars} layouts=${reply.layouts} />
          <${Study} request=${request} />`}
      </div>
    </div>
    ${reply && html`<${Announcement}>Variance: ${reply.layouts.map((a) => `${a.name} ${number(a.variance, 3)}`).join(", ")}. Probability of success: ${reply.layouts.map((a) => `${a.name} ${share(a.probability)}`).join(", ")}.<//>`}
    <${Code} python=${reply?.python} />`;
}

/** The wanted average in words. */
function blend(heads) {
  const names = [..."abcdefgh"].slice(0, heads);
  if (heads === 2) return "half of a and half of b";
  return `${WORDS[heads]} each of ${listed(names)}`;
}

/** What varies, in words. */
export function variation({ along, isotropic }) {
  if (!along && !isotropic) return ". Here no key varies.";
  if (!isotropic) return ", but the key of a varies along itself.";
  return along ? ", but every key varies, and that of a also along itself." : ", but every key varies in every direction.";
}

const MOMENT_ERROR = 1e-6; // relative; variances that differ by less are called equal
const LEAST_VARIANCE = 1e-14; // a smaller variance may be rounding

/** Which layouts have the largest and the least variance, in a sentence. */
export function spread(layouts) {
  const same = (a, b) => Math.abs(a - b) <= MOMENT_ERROR * Math.max(a, b) || Math.max(a, b) < LEAST_VARIANCE;
  const variances = layouts.map((a) => a.variance), most = Math.max(...variances), least = Math.min(...variances);
  if (most < LEAST_VARIANCE) return "The weight of a does not vary with any of them.";
  if (same(most, least)) return "The weight of a varies equally with all of them.";
  const called = (value) => listed(layouts.filter((a) => same(a.variance, value)).map(layoutName));
  return `The weight of a varies most with ${called(most)} (variance ${number(most, 3)}) and least with ${called(least)} (${number(least, 3)}).`;
}

function layoutName({ name }) {
  return name === "min variance" ? "the min-variance query" : name;
}

const EQUAL_SUCCESS = 1e-3; // layouts whose probabilities certainly differ by less are called equal

/** Which layout succeeds most often, as a title; two whose intervals overlap are not told apart. */
export function successTitle(layouts) {
  const range = Math.max(...layouts.map((a) => a.high)) - Math.min(...layouts.map((a) => a.low));
  if (range === 0) return "All three layouts succeed equally often";
  if (range < EQUAL_SUCCESS) return `All three layouts succeed equally often, to within ${atMost(range, 1)}`;
  const best = layouts.reduce((a, b) => (b.probability > a.probability ? b : a));
  const first = layouts.filter((a) => a.high >= best.low);
  if (first.length === 1) return `Success is most likely with ${layoutName(best)}`;
  return `The numbers do not tell which of ${listed(first.map(layoutName))} succeeds more often`;
}

const INTEGRATED = ["exact", "quadrature"];

/** Which numbers are exact, and which are sampled. */
function methods(layouts) {
  const exact = layouts.every((a) => INTEGRATED.includes(a.law.method)), sure = layouts.every((a) => INTEGRATED.includes(a.method) && a.high - a.low < 2e-6);
  return `Bars: the ${exact ? "exact " : ""}distribution of the weight of a${exact ? "" : ", for some layouts from thousands of samples"}. Dots: ${layouts[0].weight_samples.length} samples. `
    + `Mean${exact ? ", variance and bars" : " and variance"} are integrals, not estimates${sure ? ", and so is the probability of success." : "; the probability of success is known to within the ± beside it."}`;
}

/** One layout: the distribution as bars, the samples as dots below. */
function Layout({ layout, token, heads }) {
  const height = matchMedia("(max-width: 46rem)").matches ? 180 : 250;
  const { edges, share: shares } = layout.law;
  const bars = shares.map((share, i) => ({ from: edges[i], to: edges[i + 1], share }));
  const dots = layout.weight_samples.map((w, i) => ({ w, down: -0.07 - 0.16 * ((i * 0.6180339887) % 1) }));
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
  const off = (layout.high - layout.low) / 2;
  return html`<${Figure} title=${layout.name} className="layout">
    <${Chart} options=${options} of=${layout} height=${height} label=${`${layout.name}: the weight of a has mean ${number(layout.mean)} and variance ${number(layout.variance)}`} />
    <${Facts} rows=${[
      ["mean", number(layout.mean), `${layout.name} mean`],
      ["variance", html`<b>${number(layout.variance)}</b>`, `${layout.name} variance`],
      ["success", html`<b>${share(layout.probability)}</b>${off < 1e-6 ? "" : html` <span class="quiet">± ${number(off, 1)}</span>`}`, `${layout.name} success`],
    ]} /><//>`;
}

/** The probability of success of each layout. */
function SuccessBars({ layouts }) {
  const rows = layouts.map((a, i) => ({ name: a.name, p: a.probability, ink: `var(--${INKS[i]})` }));
  const options = () => ({
    height: 118, marginLeft: 92, marginRight: 56, marginTop: 4, marginBottom: 26,
    x: { domain: [0, 1], ticks: [0, 0.5, 1], tickFormat: (v) => ({ 0: "0", 0.5: "½", 1: "1" })[v], label: null, tickSize: 0 },
    y: { domain: rows.map((r) => r.name), label: null, tickSize: 0, padding: 0.35 },
    color: { type: "identity" },
    marks: [
      globalThis.Plot.barX(rows, { x: () => 1, y: "name", fill: "var(--wash)" }),
      globalThis.Plot.barX(rows, { x: "p", y: "name", fill: "ink" }),
      globalThis.Plot.text(rows, { x: () => 1, y: "name", text: (r) => share(r.p), textAnchor: "start", dx: 8, fill: "var(--ink)" }),
    ],
  });
  const title = successTitle(layouts);
  return html`<${Figure} title=${title}><${Chart} options=${options} of=${layouts} height=${118} label=${`${title}: ${rows.map((r) => `${r.name} ${share(r.p)}`).join(", ")}`} /><//>`;
}

const STUDY_SCALES = [0.5, 1, 1.5, 2, 2.5, 3, 3.5, 4, 5, 6, 7, 8, 10, 12, 14, 16, 20, 24, 28, 32, 40, 50];

/** The same against scale, computed by a job. */
function Study({ request }) {
  const [found, setFound] = useState(null);
  const show = (result, settings) => setFound({ ...result, settings });
  const { job, error, start, cancel, running } = useJob("noise-study", { onDone: show, onFound: show });
  const { n_samples, scale, ...settings } = request;
  const points = (found?.curves ?? []).flatMap((c, i) => c.points.map((p) => ({ ...p, name: c.name, ink: `var(--${INKS[i]})` })));
  const options = (Plot, width) => ({
    height: 260, marginLeft: 44, marginRight: 92, marginTop: 28, marginBottom: 38,
    x: { type: "log", label: "scale →", ticks: (width < 420 ? [1, 10, 50] : [0.5, 1, 2, 5, 10, 20, 50]).filter((v) => points.some((p) => p.scale === v)), tickFormat: (v) => number(v) },
    y: { domain: [0, 1], label: "↑ probability of success", ticks: 5 },
    color: { type: "identity" },
    marks: [
      Plot.areaY(points, { x: "scale", y1: "low", y2: "high", z: "name", fill: "ink", fillOpacity: 0.2 }),
      Plot.line(points, { x: "scale", y: "probability", z: "name", stroke: "ink", strokeWidth: 2 }),
      Plot.text(found.curves.map((c, i) => ({ ...c.points.at(-1), name: c.name, ink: `var(--${INKS[i]})` })), { x: "scale", y: "probability", text: "name", textAnchor: "start", dx: 6, fill: "var(--ink)" }),
    ],
  });
  return html`<section class="study">
    <div class="row"><button class="act" disabled=${running} onClick=${() => start({ ...settings, scales: STUDY_SCALES, n_draws: 20000 })}>Study all scales</button>
      ${running && html`<button class="act" onClick=${cancel}>Cancel</button><progress max="1" value=${job.total ? job.done / job.total : 0} aria-label="Progress of the study"></progress>`}
      <span class="quiet" role="status">${running ? `${job.done} of ${job.total ?? STUDY_SCALES.length} scales` : found ? "" : "22 scales, in the background, with 20,000 draws where a probability is sampled"}</span></div>
    <${Problem} error=${error ?? job?.error} />
    ${found && html`<${Figure} title="Probability of success against scale" caption=${`For ${COUNTS[found.settings.heads]} wanted of ${found.settings.n} items, noise ${typed(found.settings.along)} along a and ${typed(found.settings.isotropic)} in every direction, radius ${typed(found.settings.radius)}. Where a probability was sampled, a band shows its 95 % interval.`}>
      <${Chart} options=${options} of=${found} height=${260} label=${`Probability of success against scale for ${found.curves.map((c) => c.name).join(", ")}`} /><//>`}
  </section>`;
}

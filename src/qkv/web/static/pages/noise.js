// Noise page: the same average read by one head, by one head per item, and by the min-variance query, while a key varies.
import { html, useMemo } from "../lib/html.js";
import { useReply } from "../lib/api.js";
import { Chart, loadPlot } from "../lib/chart.js";
import { atLeast, atMost, listed, number, share, typed } from "../lib/numbers.js";
import { Facts, Figure, Problem, Slider, Announcement } from "../lib/controls.js";
import { useUrlState } from "../lib/route.js";
import { Code, NOTHING, Share } from "../lib/export.js";
import { Term } from "../lib/terms.js";
import { Study } from "./noise_study.js";

loadPlot().catch(() => {}); // loads while the first request is in flight

const DEFAULTS = { n: 10, along: 0.5, isotropic: 1e-6, scale: 6, heads: 2, radius: 0.1, n_samples: 200, seed: 0 };
const LIMITS = { n: [3, 100], along: [0, 10], isotropic: [0, 1], scale: [0, 50], heads: [2, 8], radius: [0.001, 2], n_samples: [1, 2000], seed: [0, 2 ** 31 - 1] };
export const INKS = ["one-head", "several-heads", "min-variance"];
const PARTS = { 2: "½", 3: "⅓", 4: "¼", 5: "⅕", 6: "⅙", 7: "⅐", 8: "⅛" };
const WORDS = { 2: "half", 3: "a third", 4: "a quarter", 5: "a fifth", 6: "a sixth", 7: "a seventh", 8: "an eighth" };
export const COUNTS = { 2: "two", 3: "three", 4: "four", 5: "five", 6: "six", 7: "seven", 8: "eight" };

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
  const { reply, error, current, of } = useReply("api/noise", request);
  const set = (name) => (value) => patch({ [name]: value });
  const heads = reply?.layouts[1].heads ?? request.heads;
  return html`
    <h1>Noise</h1>
    <p class="lead">We want ${blend(heads)}${variation(request)}</p>
    <${Share} name="noise" python=${reply?.python} json=${reply && !error ? { request: JSON.parse(of), reply } : null} missing=${error ? NOTHING : ""} onReset=${() => patch(DEFAULTS)} />
    <${Problem} error=${error} />
    <div class="page noise" aria-busy=${!current}>
      <section class="charts" aria-label="The weight of a">${reply && html`
        <h2 data-fact="comparison" data-picture>${spread(reply.layouts)}</h2>
        <div class="layouts">${reply.layouts.map((layout, i) => html`<${Layout} key=${i} layout=${layout} token=${INKS[i]} heads=${heads} />`)}</div>`}
      </section>
      <div class="controls">
        <${Slider} name="along" label="Noise of a along itself" hint="variance of the length of the key" value=${request.along} min=${0.001} max=${10} log zero onInput=${set("along")} />
        <${Slider} name="isotropic" label="Isotropic noise" hint="variance of every key in every direction" value=${request.isotropic} min=${1e-8} max=${1} log zero onInput=${set("isotropic")} />
        <${Slider} name="scale" label="Scale" hint="factor of the keys, and gap in score" value=${request.scale} min=${0} max=${50} step=${0.1} onInput=${set("scale")} />
        <${Slider} name="heads" label="Heads" hint="one for each wanted item" value=${request.heads} min=${2} max=${Math.min(8, request.n - 1)} step=${1} onInput=${set("heads")} />
        <${Slider} name="n" label="Items" value=${request.n} min=${3} max=${100} step=${1} onInput=${set("n")} />
        <${Slider} name="radius" label="Radius of success" hint="largest distance of the output from the wanted average" value=${request.radius} min=${0.001} max=${2} log onInput=${set("radius")} />
        <${Slider} name="n_samples" label="Samples" value=${request.n_samples} min=${10} max=${2000} step=${10} onInput=${set("n_samples")} />
        <div class="row"><button class="act" onClick=${() => patch((old) => ({ seed: (old.seed + 1) % 2 ** 31 }))}>Sample again</button></div>
      </div>
      <div class="views">
        ${reply && html`
          <p class="quiet how">One <${Term} name="head" /> scores all wanted items, ${COUNTS[heads]} heads read one item each, and the <${Term} name="min-variance query" /> is one head again. ${methods(reply.layouts)}</p>
          <${SuccessBars} layouts=${reply.layouts} />
          <${Study} request=${request} />`}
      </div>
    </div>
    ${reply && html`<${Announcement}>Variance: ${reply.layouts.map((a) => `${a.name} ${number(a.variance, 3)}`).join(", ")}. Probability of success: ${reply.layouts.map((a) => `${a.name} ${probabilityOf(a)}`).join(", ")}.<//>`}
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
  const most = Math.max(...layouts.map((a) => a.high));
  if (most === 0) return "None of the three layouts succeeds: each probability is 0";
  if (most < EQUAL_SUCCESS) return `None of the three layouts succeeds with a probability above ${atMost(most, 1)}`;
  if (range === 0) return "All three layouts succeed equally often";
  if (range < EQUAL_SUCCESS) return `All three layouts succeed equally often, to within ${atMost(range, 1)}`;
  const best = layouts.reduce((a, b) => (b.probability > a.probability ? b : a));
  const first = layouts.filter((a) => a.high >= best.low);
  if (first.length === 1) return `Success is most likely with ${layoutName(best)}`;
  return `The numbers do not tell which of ${listed(first.map(layoutName))} succeeds more often`;
}

const INTEGRATED = ["exact", "quadrature"];
const SURE = 2e-6; // an interval of the probability that is narrower than this is not shown

const isDrawn = ({ method }) => !INTEGRATED.includes(method);
const isSure = ({ low, high }) => high - low < SURE;

/** Which numbers are integrated and which are drawn, and what the range of a probability is. */
export function methods(layouts) {
  const exact = layouts.every((a) => INTEGRATED.includes(a.law.method)), drawn = layouts.filter(isDrawn), integrated = layouts.filter((a) => !isDrawn(a) && !isSure(a));
  const said = [`Bars: the ${exact ? "exact " : ""}distribution of the weight of a${exact ? "" : ", for some layouts from thousands of draws"}. Dots: ${layouts[0].weight_samples.length} samples.`];
  said.push(`Mean${exact ? ", variance and bars" : " and variance"} are integrals, not estimates${drawn.length || integrated.length ? "." : ", and so is the probability of success."}`);
  const all = drawn.length === layouts.length;
  if (drawn.length) said.push(`The probability of success${all ? "" : ` of ${listed(drawn.map(layoutName))}`} is estimated from draws, with a 95 % confidence interval below it.`);
  if (integrated.length) said.push(`That of ${listed(integrated.map(layoutName))} is integrated; the range below it is its numerical error.`);
  return said.join(" ");
}

/** The range of a probability, rounded outward, with what it is; nothing if it is too narrow to matter. */
export function rangeOf(layout) {
  if (isSure(layout)) return "";
  return `${isDrawn(layout) ? "95 % interval" : "numerical range"} ${atLeast(layout.low)} to ${atMost(layout.high)}`;
}

/** A probability with as many digits as it takes to lie in the range that is printed beside it. */
export function probabilityOf(layout) {
  const p = layout.probability, low = Number(atLeast(layout.low)), high = Number(atMost(layout.high));
  const usual = share(p), inside = (x) => x >= low && x <= high;
  if (isSure(layout) || inside(usual.startsWith("1 −") ? 1 - Number(usual.slice(3)) : Number(usual))) return usual;
  for (let digits = 4; digits < 12; digits++) if (inside(Number(number(p, digits)))) return number(p, digits);
  return String(p);
}

/** One layout: the distribution as bars, the samples as dots below. */
function Layout({ layout, token, heads }) {
  const small = matchMedia("(max-width: 46rem)").matches, height = small ? 156 : 252;
  const { edges, share: shares } = layout.law;
  const bars = shares.map((share, i) => ({ from: edges[i], to: edges[i + 1], share }));
  const dots = layout.weight_samples.map((w, i) => ({ w, down: -0.07 - 0.16 * ((i * 0.6180339887) % 1) }));
  const ink = `var(--${token})`, wanted = 1 / heads;
  const options = (Plot) => ({
    height, marginLeft: small ? 16 : 34, marginRight: small ? 6 : 10, marginBottom: 36, marginTop: small ? 26 : 24,
    x: { domain: [-0.02, 1.02], ticks: [0, wanted, 1], tickFormat: (v) => ({ 0: "0", [wanted]: PARTS[heads], 1: "1" })[v], label: "weight of a", labelAnchor: "center", labelArrow: "none", labelOffset: 32, tickSize: 0 },
    y: { domain: [-0.26, 1], ticks: [0, 0.5, 1], tickFormat: (v) => ({ 0: "0", 0.5: "½", 1: "1" })[v], label: "probability", labelArrow: "none", labelOffset: small ? 16 : 34, tickSize: 0 },
    marks: [
      Plot.ruleX([wanted], { stroke: "var(--line)", strokeDasharray: "3 3" }),
      Plot.dot(dots, { x: "w", y: "down", r: dots.length > 600 ? 1 : small ? 1.2 : 1.8, fill: ink, fillOpacity: 0.55 }),
      Plot.rectY(bars, { x1: "from", x2: "to", y: "share", fill: ink, insetLeft: small ? 0.2 : 0.5, insetRight: small ? 0.2 : 0.5 }),
      Plot.ruleY([0], { stroke: "var(--quiet)" }),
    ],
  });
  const range = rangeOf(layout);
  return html`<${Figure} title=${layout.name} className="layout">
    <${Chart} options=${options} of=${layout} height=${height} label=${`${layout.name}: the weight of a has mean ${number(layout.mean)} and variance ${number(layout.variance)}`} />
    <${Facts} rows=${[
      ["mean", number(layout.mean), `${layout.name} mean`],
      [html`<${Term} name="variance" />`, html`<b>${number(layout.variance)}</b>`, `${layout.name} variance`],
      [html`<${Term} name="radius of success">success<//>`, html`<b>${probabilityOf(layout)}</b>`, `${layout.name} success`],
    ]} />
    <p class="range quiet" data-fact=${`${layout.name} range`}>${range}</p><//>`;
}

/** The probability of success of each layout. */
function SuccessBars({ layouts }) {
  const rows = layouts.map((a, i) => ({ name: a.name, p: a.probability, said: probabilityOf(a), ink: `var(--${INKS[i]})` }));
  const options = () => ({
    height: 128, marginLeft: 92, marginRight: 56, marginTop: 4, marginBottom: 36,
    x: { domain: [0, 1], ticks: [0, 0.5, 1], tickFormat: (v) => ({ 0: "0", 0.5: "½", 1: "1" })[v], label: "probability of success", labelAnchor: "center", labelArrow: "none", labelOffset: 32, tickSize: 0 },
    y: { domain: rows.map((r) => r.name), label: null, tickSize: 0, padding: 0.35 },
    color: { type: "identity" },
    marks: [
      globalThis.Plot.barX(rows, { x: () => 1, y: "name", fill: "var(--wash)" }),
      globalThis.Plot.barX(rows, { x: "p", y: "name", fill: "ink" }),
      globalThis.Plot.text(rows, { x: () => 1, y: "name", text: (r) => r.said, textAnchor: "start", dx: 8, fill: "var(--ink)" }),
    ],
  });
  const title = successTitle(layouts);
  return html`<${Figure} title=${title}><${Chart} options=${options} of=${layouts} height=${128} label=${`${title}: ${rows.map((r) => `${r.name} ${r.said}`).join(", ")}`} /><//>`;
}

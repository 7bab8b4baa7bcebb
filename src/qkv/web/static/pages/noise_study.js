// The study of the noise page: the probability of success against scale, computed by a job at scales of its choice.
import { html, useState } from "../lib/html.js";
import { Chart } from "../lib/chart.js";
import { atMost, number, typed } from "../lib/numbers.js";
import { Figure, Problem } from "../lib/controls.js";
import { useJob } from "../lib/jobs.js";
import { COUNTS, INKS } from "./noise.js";

const SCALES = [0.5, 0.7, 1, 1.4, 2, 2.8, 4, 5.6, 8, 11, 16, 22, 32, 50]; // the first ones; the job adds others where the curves are steep
const MAX_ADDED = 50;
const SMALL_CHANGE = 0.03; // as in job_tasks.py

/** How finely the curves were computed, in a sentence that holds for these points. */
export function resolution(curves) {
  const scales = curves[0].points.map((p) => p.scale);
  const change = (i) => Math.max(...curves.map((c) => Math.abs(c.points[i + 1].probability - c.points[i].probability)));
  const steep = scales.slice(0, -1).map((s, i) => [scales[i + 1] / s - 1, change(i)]).filter(([, c]) => c > SMALL_CHANGE).map(([gap]) => gap);
  const found = `Computed at ${scales.length} scales.`;
  return steep.length ? `${found} Where a curve changes by more than ${SMALL_CHANGE} from one to the next, they are at most ${atMost(100 * Math.max(...steep), 2)} % apart.`
    : `${found} From one to the next no curve changes by more than ${SMALL_CHANGE}.`;
}

const LABEL_GAP = 0.065; // of two names at the ends of curves, as a part of the axis

/** The names of the curves at their ends, moved apart where they would overlap. */
export function endLabels(curves) {
  const ends = curves.map((c) => ({ name: c.name, scale: c.points.at(-1).scale, at: c.points.at(-1).probability })).sort((p, q) => p.at - q.at);
  ends.forEach((end, i) => { if (i) end.at = Math.max(end.at, ends[i - 1].at + LABEL_GAP); });
  return ends;
}

export function Study({ request }) {
  const [found, setFound] = useState(null);
  const show = (result, settings) => setFound({ ...result, settings });
  const { job, error, start, cancel, running } = useJob("noise-study", { onDone: show, onFound: show });
  const { n_samples, scale, ...settings } = request;
  const points = (found?.curves ?? []).flatMap((c, i) => c.points.map((p) => ({ ...p, name: c.name, ink: `var(--${INKS[i]})` })));
  const options = (Plot, width) => ({
    height: 260, marginLeft: 44, marginRight: 92, marginTop: 28, marginBottom: 38,
    x: { type: "log", label: "scale →", ticks: width < 420 ? [1, 10, 50] : [0.5, 1, 2, 5, 10, 20, 50], tickFormat: (v) => number(v) },
    y: { domain: [0, 1], label: "↑ probability of success", ticks: 5 },
    color: { type: "identity" },
    marks: [
      Plot.areaY(points, { x: "scale", y1: "low", y2: "high", z: "name", fill: "ink", fillOpacity: 0.2 }),
      Plot.line(points, { x: "scale", y: "probability", z: "name", stroke: "ink", strokeWidth: 2 }),
      Plot.text(endLabels(found.curves), { x: "scale", y: "at", text: "name", textAnchor: "start", dx: 6, fill: "var(--ink)" }),
    ],
  });
  return html`<section class="study" aria-label="Study">
    <div class="row"><button class="act" disabled=${running} onClick=${() => start({ ...settings, scales: SCALES, refine: MAX_ADDED, n_draws: 20000 })}>Study all scales</button>
      ${running && html`<button class="act" onClick=${cancel}>Cancel</button><progress max="1" value=${job.total ? job.done / job.total : 0} aria-label="Progress of the study"></progress>`}
      <span class="quiet" role="status">${running ? `${job.done} of at most ${job.total ?? SCALES.length + MAX_ADDED} scales` : found ? "" : `at most ${SCALES.length + MAX_ADDED} scales, in the background, with 20,000 draws where a probability is drawn`}</span></div>
    <${Problem} error=${error ?? job?.error} />
    ${found && html`<${Figure} title="Probability of success against scale" caption=${`For ${COUNTS[found.settings.heads]} wanted of ${found.settings.n} items, noise ${typed(found.settings.along)} along a and ${typed(found.settings.isotropic)} in every direction, radius ${typed(found.settings.radius)}. Where a probability was drawn, a band shows its 95 % confidence interval. ${resolution(found.curves)}`}>
      <${Chart} options=${options} of=${found} height=${260} label=${`Probability of success against scale for ${found.curves.map((c) => c.name).join(", ")}`} /><//>`}
  </section>`;
}

// Training from the page, with its loss as it falls.
import { html, useState } from "../vendor/htm-preact.js";
import { Chart } from "../lib/chart.js";
import { useJob } from "../lib/jobs.js";
import { number } from "../lib/numbers.js";
import { Choice, Figure, Problem, Slider } from "../lib/parts.js";

const START = { people: 50, steps: 600, layers: 2, width: 64, attention: "rope", seed: 0 };

export function Training({ onDone, onFound, quiet }) {
  const [settings, setSettings] = useState(START);
  const { job, error, start, cancel, running } = useJob("train", { onDone, onFound });
  const set = (name) => (value) => setSettings((old) => ({ ...old, [name]: value }));
  return html`<section class="training" aria-label="Train a model">
    <h2>${quiet ? "Train another" : "Train a model"}</h2>
    <div class="page">
      <div class="controls">
        <${Slider} name="people" label="People" hint="people whose places of birth it reads; half it is asked about" value=${settings.people} min=${4} max=${500} step=${1} onInput=${set("people")} />
        <${Slider} name="steps" label="Steps" value=${settings.steps} min=${10} max=${2000} step=${10} onInput=${set("steps")} />
        <${Choice} label="Layers" value=${String(settings.layers)} options=${["1", "2", "3", "4"].map((v) => [v, v])} onInput=${(v) => set("layers")(Number(v))} />
        <${Choice} label="Width" value=${String(settings.width)} options=${["32", "64", "96", "128"].map((v) => [v, v])} onInput=${(v) => set("width")(Number(v))} />
        <${Choice} label="Attention" value=${settings.attention} options=${[["rope", "rope"], ["causal", "causal"]]} onInput=${set("attention")} />
        <div class="row">
          <button class="act main" disabled=${running} onClick=${() => start(settings)}>Train</button>
          <button class="act" disabled=${!running} onClick=${cancel}>Cancel</button>
        </div>
        <${Problem} error=${error} />
      </div>
      <div class="views">${job ? html`<${Progress} job=${job} />` : html`<p class="quiet">It runs beside this page, which may be closed and opened again meanwhile.</p>`}</div>
    </div>
  </section>`;
}

const WORDS = { running: "Training", done: "Trained", failed: "Training failed", cancelled: "Cancelled", lost: "The server has forgotten this job" };

function Progress({ job }) {
  const points = job.steps.filter((s) => Number.isFinite(s.loss));
  const last = points.at(-1);
  const options = (Plot) => ({
    height: 220, marginLeft: 44, marginBottom: 36, marginTop: 16, marginRight: 14,
    x: { label: "step →", domain: [0, job.total || last?.done || 1], ticks: 5 },
    y: { label: "↑ loss", zero: true, ticks: 5, nice: true },
    marks: [
      Plot.line(points, { x: "done", y: "loss", stroke: "var(--ink)", strokeWidth: 2 }),
      last && Plot.dot([last], { x: "done", y: "loss", r: 4, fill: "var(--accent)" }),
      last && Plot.text([last], { x: "done", y: "loss", text: () => number(last.loss, 3), dy: -12, fill: "var(--accent)", stroke: "var(--paper)", strokeWidth: 4 }),
    ],
  });
  const share = job.total ? job.done / job.total : 0;
  return html`<${Figure} title=${`${WORDS[job.status]}${job.total ? `: step ${job.done} of ${job.total}` : job.status === "running" ? " …" : ""}`}>
    <progress max="1" value=${job.status === "done" ? 1 : share} aria-label="Progress of the training"></progress>
    <p class="quiet" role="status">${[job.status === "running" && Number.isFinite(job.tokens_per_second) && `${Math.round(job.tokens_per_second).toLocaleString("en")} tokens a second`, last && `loss ${number(last.loss, 3)}`].filter(Boolean).join(", ")}</p>
    <${Problem} error=${job.error} />
    ${points.length > 1 && html`<${Chart} options=${options} of=${job.steps} height=${220} label=${`Loss by step; now ${number(last.loss, 3)}`} />`}<//>`;
}

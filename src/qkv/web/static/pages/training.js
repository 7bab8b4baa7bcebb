// Training a model from the page, with its loss.
import { html } from "../lib/html.js";
import { Chart } from "../lib/chart.js";
import { useJob } from "../lib/jobs.js";
import { number } from "../lib/numbers.js";
import { useRemembered } from "../lib/route.js";
import { Choice, Figure, Problem, Slider } from "../lib/controls.js";

const START = { people: 50, steps: 600, n_layer: 2, d_model: 64, attention: "rope", seed: 0 };

export function Training({ onDone, onFound, hasModels }) {
  const [settings, setSettings] = useRemembered("training", START);
  const { job, error, start, cancel, running } = useJob("train", { onDone, onFound });
  const set = (name) => (value) => setSettings((old) => ({ ...old, [name]: value }));
  return html`<section class="training" aria-label="Train a model">
    <h2>${hasModels ? "Train another model" : "Train a model"}</h2>
    <div class="page">
      <div class="controls">
        <${Slider} name="people" label="People" hint="people whose birthplaces it reads; it is asked about half of them" value=${settings.people} min=${4} max=${500} step=${1} onInput=${set("people")} />
        <${Slider} name="steps" label="Steps" value=${settings.steps} min=${10} max=${2000} step=${10} onInput=${set("steps")} />
        <${Choice} label="Layers" value=${String(settings.n_layer)} options=${["1", "2", "3", "4"].map((v) => [v, v])} onInput=${(v) => set("n_layer")(Number(v))} />
        <${Choice} label="d_model" value=${String(settings.d_model)} options=${["32", "64", "96", "128"].map((v) => [v, v])} onInput=${(v) => set("d_model")(Number(v))} />
        <${Choice} label="Attention" value=${settings.attention} options=${[["rope", "rope"], ["causal", "causal"]]} onInput=${set("attention")} />
        <div class="row">
          <button class="act main" disabled=${running} onClick=${() => start(settings)}>Train</button>
          <button class="act" disabled=${!running} onClick=${cancel}>Cancel</button>
        </div>
        <${Problem} error=${error} />
      </div>
      <div class="views">${job ? html`<${Progress} job=${job} />` : html`<p class="quiet">Training runs on the server; this page may be closed and opened again meanwhile.</p>`}</div>
    </div>
  </section>`;
}

const STATUS = { running: "Training", done: "Trained", failed: "Training failed", cancelled: "Cancelled", lost: "The server no longer knows this job" };

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
  return html`<${Figure} title=${`${STATUS[job.status]}${job.total ? `: step ${job.done} of ${job.total}` : job.status === "running" ? " …" : ""}`}>
    <progress max="1" value=${job.status === "done" ? 1 : share} aria-label="Progress of the training"></progress>
    <p class="quiet" role="status">${[job.status === "running" && Number.isFinite(job.tokens_per_second) && `${Math.round(job.tokens_per_second).toLocaleString("en")} tokens a second`, last && `loss ${number(last.loss, 3)}`].filter(Boolean).join(", ")}</p>
    <${Problem} error=${job.error} />
    ${points.length > 1 && html`<${Chart} options=${options} of=${job.steps} height=${220} label=${`Loss by step; now ${number(last.loss, 3)}`} />`}<//>`;
}

// Training from the page: a job outside the request, followed live, cancelled at will, found again after a reload.
import { html, useEffect, useRef, useState } from "../vendor/htm-preact.js";
import { ask } from "../lib/api.js";
import { Chart } from "../lib/chart.js";
import { capital } from "../lib/names.js";
import { number } from "../lib/numbers.js";
import { Choice, Figure, Problem, Slider } from "../lib/parts.js";

const START = { people: 50, steps: 600, layers: 2, width: 64, attention: "rope", seed: 0 };

export function Training({ onDone, onFound, quiet }) {
  const [settings, setSettings] = useState(START);
  const [job, setJob] = useState(null); // { id, status, settings, points, done, total, error }
  const [error, setError] = useState(null);
  const source = useRef(null);

  const follow = (id, of) => {
    source.current?.close();
    setJob({ id, status: "running", settings: of, points: [], done: 0, total: null, error: null });
    const events = new EventSource(`api/jobs/${id}/events`);
    source.current = events;
    const change = (patch) => setJob((old) => (old?.id === id ? { ...old, ...patch(old) } : old));
    events.addEventListener("progress", (e) => {
      const data = JSON.parse(e.data);
      change((old) => ({ ...data, points: Number.isFinite(data.loss) ? [...old.points, { step: data.done, loss: data.loss, stage: data.stage ?? "" }] : old.points }));
    });
    events.addEventListener("done", (e) => { events.close(); const result = JSON.parse(e.data); change(() => ({ status: "done", result })); onDone(result); });
    events.addEventListener("failed", (e) => { events.close(); const why = JSON.parse(e.data); change(() => ({ status: "failed", error: { message: capital(`${why.asked}: ${why.came}. ${why.try}.`) } })); });
    events.addEventListener("cancelled", () => { events.close(); change(() => ({ status: "cancelled" })); });
    // The browser reconnects by itself and goes on after the last event; a stream that is refused stays closed.
    events.onerror = () => { if (events.readyState === EventSource.CLOSED) change((old) => (old.status === "running" ? { status: "lost" } : {})); };
  };
  useEffect(() => {
    ask("api/jobs").then((reply) => {
      const latest = reply.jobs.find((j) => j.kind === "train");
      if (latest?.status === "running") follow(latest.id, latest.settings);
      else if (latest?.status === "done") onFound(latest.result);
    }, () => {});
    return () => source.current?.close();
  }, []);

  const start = async () => {
    setError(null);
    try {
      const { id } = await ask("api/jobs", { kind: "train", ...settings });
      follow(id, settings);
    } catch (failure) {
      setError(failure);
    }
  };
  const cancel = () => ask(`api/jobs/${job.id}`, undefined, { method: "DELETE" }).catch(setError);
  const set = (name) => (value) => setSettings((old) => ({ ...old, [name]: value }));
  const running = job?.status === "running";
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
          <button class="act main" disabled=${running} onClick=${start}>Train</button>
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
  const last = job.points.at(-1);
  const options = (Plot) => ({
    height: 220, marginLeft: 44, marginBottom: 36, marginTop: 16, marginRight: 14,
    x: { label: "step →", domain: [0, job.total || job.points.at(-1)?.step || 1], ticks: 5 },
    y: { label: "↑ loss", zero: true, ticks: 5, nice: true },
    marks: [
      Plot.line(job.points, { x: "step", y: "loss", z: "stage", stroke: "var(--ink)", strokeWidth: 2 }),
      last && Plot.dot([last], { x: "step", y: "loss", r: 4, fill: "var(--accent)" }),
      last && Plot.text([last], { x: "step", y: "loss", text: () => number(last.loss, 3), dy: -12, fill: "var(--accent)", stroke: "var(--paper)", strokeWidth: 4 }),
    ],
  });
  const share = job.total ? job.done / job.total : 0;
  return html`<${Figure} title=${`${WORDS[job.status]}${job.total ? `: step ${job.done} of ${job.total}` : job.status === "running" ? " …" : ""}`}>
    <progress max="1" value=${job.status === "done" ? 1 : share} aria-label="Progress of the training"></progress>
    <p class="quiet" role="status">${[job.stage, job.status === "running" && Number.isFinite(job.tokens_per_second) && `${Math.round(job.tokens_per_second).toLocaleString("en")} tokens a second`, last && `loss ${number(last.loss, 3)}`].filter(Boolean).join(", ")}</p>
    <${Problem} error=${job.error} />
    ${job.points.length > 1 && html`<${Chart} options=${options} of=${job.points} height=${220} label=${`Loss by step; now ${number(last.loss, 3)}`} />`}<//>`;
}

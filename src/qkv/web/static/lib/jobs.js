// Long jobs on the server: start, follow, cancel, and find again after a reload.
import { useEffect, useRef, useState } from "./html.js";
import { ask, refusalText } from "./api.js";

/**
 * The latest job of one kind: { id, status, settings, steps, done, total, result, error }, or null. `steps` holds all
 * progress events. `onDone` is called when a job ends, `onFound` with one that had ended before the page was opened.
 */
export function useJob(kind, { onDone, onFound } = {}) {
  const [job, setJob] = useState(null);
  const [error, setError] = useState(null);
  const source = useRef(null);

  const follow = (id, settings) => {
    source.current?.close();
    setJob({ id, status: "running", settings, steps: [], done: 0, total: null, result: null, error: null });
    const events = new EventSource(`api/jobs/${id}/events`);
    source.current = events;
    const change = (patch) => setJob((old) => (old?.id === id ? { ...old, ...patch(old) } : old));
    const ending = (name, patch) => events.addEventListener(name, (e) => { events.close(); change(() => ({ status: name, ...patch(JSON.parse(e.data)) })); });
    events.addEventListener("progress", (e) => { const data = JSON.parse(e.data); change((old) => ({ ...data, steps: [...old.steps, data] })); });
    ending("done", (result) => { onDone?.(result, settings); return { result }; });
    ending("failed", (refusal) => ({ error: { message: refusalText(refusal) } }));
    ending("cancelled", () => ({}));
    // The browser reconnects by itself and continues after the last event; a stream that is refused stays closed.
    events.onerror = () => { if (events.readyState === EventSource.CLOSED) change((old) => (old.status === "running" ? { status: "lost" } : {})); };
  };
  useEffect(() => {
    const control = new AbortController();
    ask("api/jobs", undefined, { signal: control.signal }).then((reply) => {
      const latest = (reply?.jobs ?? []).find((j) => j.kind === kind && (j.status === "running" || j.status === "done"));
      if (latest?.status === "running") follow(latest.id, latest.settings);
      else if (latest) onFound?.(latest.result, latest.settings);
    }, () => {});
    return () => { control.abort(); source.current?.close(); };
  }, []);

  const start = async (settings) => {
    setError(null);
    try {
      const { id } = await ask("api/jobs", { kind, ...settings });
      follow(id, settings);
    } catch (failure) {
      setError(failure);
    }
  };
  const cancel = () => ask(`api/jobs/${job.id}`, undefined, { method: "DELETE" }).catch(setError);
  return { job, error, start, cancel, running: job?.status === "running" };
}

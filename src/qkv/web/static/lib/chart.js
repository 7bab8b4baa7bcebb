// Charts by Observable Plot, which is loaded by the first one that is drawn.
import { html, useEffect, useLayoutEffect, useRef, useState } from "../vendor/htm-preact.js";

/** Classic scripts, in order, once. */
const scripts = new Map();
export function script(path) {
  if (!scripts.has(path)) {
    scripts.set(path, new Promise((done, failed) => {
      const tag = document.createElement("script");
      tag.src = new URL(path, import.meta.url);
      tag.async = false; // in order, but fetched side by side
      tag.onload = done;
      tag.onerror = () => { scripts.delete(path); failed(new Error(`${path} could not be loaded`)); };
      document.head.append(tag);
    }));
  }
  return scripts.get(path);
}

let plot = null;
export async function loadPlot() {
  await Promise.all([script("../vendor/d3.min.js"), script("../vendor/plot.min.js")]);
  plot = globalThis.Plot;
}

/** How wide an element is, kept current. */
export function useWidth(ref) {
  const [width, setWidth] = useState(0);
  useLayoutEffect(() => {
    const measured = () => setWidth(Math.floor(ref.current?.clientWidth ?? 0));
    measured();
    const watch = new ResizeObserver(measured);
    watch.observe(ref.current);
    return () => watch.disconnect();
  }, []);
  return width;
}

const LEAST = 100; // narrower than any chart on the page: its place is not laid out yet

/** A chart: `options(Plot, width)` says what to draw, again whenever `of` changes. `label` says it in words. */
export function Chart({ options, of, label, height = 220 }) {
  const frame = useRef(null);
  const width = useWidth(frame);
  const [ready, setReady] = useState(plot !== null);
  useEffect(() => { ready || loadPlot().then(() => setReady(true), () => {}); }, []);
  useLayoutEffect(() => {
    if (!ready || width < LEAST || of === null || of === undefined) return;
    const { marks, ...rest } = options(plot, width);
    const style = { background: "none", fontSize: "12px", overflow: "visible" };
    const drawn = plot.plot({ width, height, style, ...rest, marks: marks.filter(Boolean) });
    // Plot brings a style element, which the page's policy refuses; explorer.css has its rules.
    drawn.querySelectorAll("style").forEach((s) => s.remove());
    drawn.setAttribute("role", "img");
    drawn.setAttribute("aria-label", label);
    frame.current.replaceChildren(drawn);
  }, [ready, width, of, label]);
  return html`<div class="chart" ref=${frame} style=${{ minHeight: `${height}px` }}></div>`;
}

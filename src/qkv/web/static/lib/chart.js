// Charts by Observable Plot, which is loaded when the first one is drawn.
import { html, useEffect, useLayoutEffect, useRef, useState } from "./html.js";

/** Loads a classic script once; scripts run in the order of the calls. */
const scripts = new Map();
export function script(path) {
  if (!scripts.has(path)) {
    scripts.set(path, new Promise((done, failed) => {
      const tag = document.createElement("script");
      tag.src = new URL(path, import.meta.url);
      tag.async = false; // run in order, though fetched in parallel
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

/** The width of an element, kept up to date. */
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

const MIN_WIDTH = 100; // a narrower element has not been laid out yet

/** A chart: `options(Plot, width)` gives the options of Plot, read again whenever `of` changes; `label` describes it. */
export function Chart({ options, of, label, height = 220 }) {
  const frame = useRef(null);
  const width = useWidth(frame);
  const [ready, setReady] = useState(plot !== null);
  useEffect(() => { ready || loadPlot().then(() => setReady(true), () => {}); }, []);
  useLayoutEffect(() => {
    if (!ready || width < MIN_WIDTH || of === null || of === undefined) return;
    const { marks, ...rest } = options(plot, width);
    const style = { background: "none", fontSize: "12px", overflow: "visible" };
    const drawn = plot.plot({ width, height, style, ...rest, marks: marks.filter(Boolean) });
    // Plot adds a style element, which the Content-Security-Policy forbids; explorer.css has its rules.
    drawn.querySelectorAll("style").forEach((s) => s.remove());
    // Its labels of groups are no names for screen readers: the chart as a whole has one.
    for (const group of drawn.querySelectorAll("g[aria-label]")) {
      group.dataset.mark = group.getAttribute("aria-label");
      group.removeAttribute("aria-label");
    }
    drawn.setAttribute("role", "img");
    drawn.setAttribute("aria-label", label);
    frame.current.replaceChildren(drawn);
  }, [ready, width, of, label]);
  return html`<div class="chart" ref=${frame} style=${{ minHeight: `${height}px` }}></div>`;
}

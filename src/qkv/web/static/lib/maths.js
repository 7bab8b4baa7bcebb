// Formulas by KaTeX, which is loaded when the first one is shown.
import { html, useEffect, useRef, useState } from "./html.js";
import { script } from "./chart.js";

const OVERHANG = 4; // pixels by which italic letters may stand out of their box
let ready = false;
async function load() {
  if (!document.querySelector("link[data-katex]")) {
    const sheet = Object.assign(document.createElement("link"), { rel: "stylesheet", href: new URL("../vendor/katex.min.css", import.meta.url) });
    sheet.dataset.katex = "";
    document.head.append(sheet);
  }
  await script("../vendor/katex.min.js");
  ready = true;
}

/** One formula; its plain text where KaTeX fails or is not loaded yet. */
export function Maths({ tex, text, display = false }) {
  const place = useRef(null);
  const [loaded, setLoaded] = useState(ready);
  useEffect(() => { loaded || load().then(() => setLoaded(true), () => {}); }, []);
  useEffect(() => {
    if (!loaded || !tex) return;
    try {
      globalThis.katex.render(tex, place.current, { displayMode: display, throwOnError: true, strict: "ignore", trust: false });
    } catch {
      place.current.textContent = text ?? tex;
    }
  }, [loaded, tex, text, display]);
  useEffect(() => { // only a formula that does not fit scrolls, not one whose last letter leans out; the keyboard reaches it
    const element = place.current;
    const watch = new ResizeObserver(() => {
      const wide = element.clientWidth > 0 && element.scrollWidth > element.clientWidth + OVERHANG;
      element.classList.toggle("wide", wide);
      wide ? element.setAttribute("tabindex", "0") : element.removeAttribute("tabindex");
    });
    watch.observe(element);
    return () => watch.disconnect();
  }, [loaded, tex, display]);
  return html`<span class=${display ? "maths display" : "maths"} ref=${place}>${loaded && tex ? null : text ?? tex}</span>`;
}

// Copying and downloading: link, Python code, numbers, pictures.
import { html, useRef, useState } from "../vendor/htm-preact.js";

const STYLE_PROPERTIES = ["fill", "stroke", "stroke-width", "stroke-dasharray", "stroke-linecap", "stroke-linejoin", "opacity", "fill-opacity",
  "stroke-opacity", "font-size", "font-weight", "font-family", "font-style", "font-variant-numeric", "text-anchor", "dominant-baseline", "paint-order", "visibility"];

/** The buttons under the title of a page: copy as Python, copy link, download, and with `onReset`, back to the initial state. */
export function Share({ name, python, json, draw = drawing, onReset, children }) {
  const [said, setSaid] = useState("");
  const row = useRef(null);
  const timer = useRef(null);
  const say = (text) => {
    setSaid(text);
    clearTimeout(timer.current);
    timer.current = setTimeout(() => setSaid(""), 2500);
  };
  const copied = async (text, what) => say((await copy(text)) ? `${what} copied` : "The browser did not allow copying");
  const picture = async (kind) => {
    const drawn = draw(row.current.closest("main"));
    if (!drawn) return say("There is no picture yet");
    const blob = kind === "svg" ? new Blob([drawn.text], { type: "image/svg+xml" }) : await bitmap(drawn);
    download(blob, `qkv-${name}.${kind}`);
    return say(`qkv-${name}.${kind} saved`);
  };
  return html`<div class="share" ref=${row}>
    <button onClick=${() => copied(python, "Python")} disabled=${!python}>Copy as Python</button>
    <button onClick=${() => setTimeout(() => copied(location.href, "Link"), 160)}>Copy link</button>
    <span class="download">Download
      <button onClick=${() => picture("svg")} aria-label="Download the pictures as SVG">SVG</button>
      <button onClick=${() => picture("png")} aria-label="Download the pictures as PNG">PNG</button>
      <button disabled=${!json} aria-label="Download the numbers as JSON"
        onClick=${() => download(new Blob([JSON.stringify(json, null, 1)], { type: "application/json" }), `qkv-${name}.json`)}>JSON</button>
    </span>
    ${onReset && html`<button onClick=${onReset}>Start over</button>`}
    ${children}
    <span class="said" role="status">${said}</span>
  </div>`;
}

/** The Python code for what is on screen. */
export function Code({ python }) {
  return html`<details class="code"><summary>Python code for what is on screen</summary><pre data-python tabindex="0">${python ?? ""}</pre></details>`;
}

async function copy(text) {
  try {
    await navigator.clipboard.writeText(text);
    return true;
  } catch {
    // Beyond loopback and without https, browsers offer no clipboard; a selected text area can still be copied.
    const area = document.createElement("textarea");
    area.value = text;
    area.className = "unseen";
    document.body.append(area);
    area.select();
    const done = document.execCommand("copy");
    area.remove();
    return done;
  }
}

function download(blob, name) {
  const link = document.createElement("a");
  link.href = URL.createObjectURL(blob);
  link.download = name;
  link.click();
  setTimeout(() => URL.revokeObjectURL(link.href), 10000);
}

/** All figures of the page, one below the other, in the current colours, as one self-contained SVG. */
export function drawing(root) {
  const gap = 24;
  let top = gap, width = 0;
  const parts = [];
  const ink = getComputedStyle(document.body);
  for (const figure of root.querySelectorAll("figure")) {
    const drawn = [...figure.querySelectorAll("svg")].filter((svg) => svg.getBoundingClientRect().width > 0 && !svg.closest(".katex"));
    if (!drawn.length) continue;
    const title = figure.querySelector("h2, h3")?.textContent;
    if (title) {
      parts.push(`<text x="${gap}" y="${top + 14}" font-size="15" font-weight="600" font-family="system-ui, sans-serif" fill="${ink.color}">${escaped(title)}</text>`);
      top += 30;
    }
    const frame = figure.getBoundingClientRect();
    const first = Math.min(...drawn.map((svg) => svg.getBoundingClientRect().top));
    let bottom = 0;
    for (const svg of drawn) {
      const box = svg.getBoundingClientRect();
      const clone = withInlineStyles(svg);
      clone.setAttribute("x", gap + box.left - frame.left);
      clone.setAttribute("y", top + box.top - first);
      clone.setAttribute("width", box.width);
      clone.setAttribute("height", box.height);
      parts.push(new XMLSerializer().serializeToString(clone));
      bottom = Math.max(bottom, box.top - first + box.height);
      width = Math.max(width, box.left - frame.left + box.width);
    }
    top += bottom + gap;
  }
  if (!parts.length) return null;
  const size = { width: Math.ceil(width + 2 * gap), height: Math.ceil(top) };
  const text = `<svg xmlns="http://www.w3.org/2000/svg" width="${size.width}" height="${size.height}" viewBox="0 0 ${size.width} ${size.height}">`
    + `<rect width="100%" height="100%" fill="${ink.backgroundColor}"/>${parts.join("")}</svg>`;
  return { text, ...size };
}

/** Rows of [verdict, colour, text, reason] as an SVG, for a page without figures. */
export function listing(rows) {
  if (!rows.length) return null;
  const style = getComputedStyle(document.documentElement), ink = getComputedStyle(document.body);
  const cut = (text) => escaped(text.length > 100 ? `${text.slice(0, 99)}…` : text);
  const lines = rows.map(([word, tone, text, reason], i) => `<g transform="translate(24 ${40 + 52 * i})">`
    + `<text font-weight="600" fill="${style.getPropertyValue(`--${tone}`)}">${cut(word)}</text>`
    + `<text x="130" font-family="ui-monospace, monospace" fill="${ink.color}">${cut(text)}</text>`
    + `<text x="130" y="20" font-size="12" fill="${style.getPropertyValue("--quiet")}">${cut(reason)}</text></g>`);
  const size = { width: 900, height: 52 * rows.length + 40 };
  return { ...size, text: `<svg xmlns="http://www.w3.org/2000/svg" width="900" height="${size.height}" font-family="system-ui, sans-serif" font-size="14">`
    + `<rect width="100%" height="100%" fill="${ink.backgroundColor}"/>${lines.join("")}</svg>` };
}

function withInlineStyles(svg) {
  const clone = svg.cloneNode(true);
  const originals = [svg, ...svg.querySelectorAll("*")];
  [clone, ...clone.querySelectorAll("*")].forEach((node, i) => {
    const style = getComputedStyle(originals[i]);
    for (const name of STYLE_PROPERTIES) {
      const value = style.getPropertyValue(name);
      if (value) node.setAttribute(name, value);
    }
    for (const name of ["style", "class", "tabindex", "role"]) node.removeAttribute(name);
  });
  return clone;
}

function escaped(text) {
  return text.replace(/[&<>]/g, (c) => ({ "&": "&amp;", "<": "&lt;", ">": "&gt;" })[c]);
}

async function bitmap({ text, width, height }) {
  const address = URL.createObjectURL(new Blob([text], { type: "image/svg+xml" }));
  try {
    const image = new Image();
    image.src = address;
    await image.decode();
    const canvas = Object.assign(document.createElement("canvas"), { width: 2 * width, height: 2 * height });
    canvas.getContext("2d").drawImage(image, 0, 0, 2 * width, 2 * height);
    return await new Promise((done) => canvas.toBlob(done, "image/png"));
  } finally {
    URL.revokeObjectURL(address);
  }
}

// Copying and downloading: link, Python code, numbers, pictures.
import { html, useRef, useState } from "./html.js";
import { START_OVER, useId } from "./controls.js";

const STYLE_PROPERTIES = ["fill", "stroke", "stroke-width", "stroke-dasharray", "stroke-linecap", "stroke-linejoin", "opacity", "fill-opacity",
  "stroke-opacity", "font-size", "font-weight", "font-family", "font-style", "font-variant-numeric", "text-anchor", "dominant-baseline", "paint-order", "visibility"];

const WAITING = "There is no result yet.";
export const NOTHING = "There is nothing to download.";

/**
 * The buttons under the title of a page: copy as Python, copy link, download, and with `onReset`, back to the initial state.
 * What is not on screen cannot be downloaded: `json` is the result that is shown, `pictured` whether there is a picture of it,
 * and `missing` says why there is none, where waiting alone does not help.
 */
export function Share({ name, python, json, pictured = Boolean(json), missing = "", draw = drawing, onReset, children }) {
  const why = useId("missing");
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
    <span class="download" title=${pictured && json ? null : missing || WAITING}>Download
      <button disabled=${!pictured} aria-describedby=${pictured ? null : why} onClick=${() => picture("svg")} aria-label="Download the pictures as SVG">SVG</button>
      <button disabled=${!pictured} aria-describedby=${pictured ? null : why} onClick=${() => picture("png")} aria-label="Download the pictures as PNG">PNG</button>
      <button disabled=${!json} aria-describedby=${json ? null : why} aria-label="Download the numbers as JSON"
        onClick=${() => download(new Blob([JSON.stringify(json, null, 1)], { type: "application/json" }), `qkv-${name}.json`)}>JSON</button>
      ${!(pictured && json) && html`<span id=${why} class=${missing ? "missing" : "unseen"}>${missing || WAITING}</span>`}
    </span>
    ${onReset && html`<button onClick=${() => { onReset(); dispatchEvent(new Event(START_OVER)); }}>Start over</button>`}
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

const PICTURED = "figure, dl.facts, .answer, .outcomes, .views h2, [data-picture]"; // figures, sentences, numbers, an answer with its badge
const LEFT_OUT = "button:not(.term button):not(.pick), select, input, textarea, details:not([open]), .unseen, .meaning, .katex-mathml, [data-unpictured]";
const GAP = 24;

/** What the page shows, with its titles, captions and numbers, where it stands on screen, as one self-contained SVG. */
export function drawing(root) {
  const blocks = [...root.querySelectorAll(PICTURED)].filter((block) => !block.parentElement.closest(PICTURED) && !block.closest(LEFT_OUT));
  const boxes = blocks.map((block) => ({ block, box: block.getBoundingClientRect() })).filter(({ box }) => box.width > 0 && box.height > 0);
  if (!boxes.some(({ block }) => block.querySelector("svg"))) return null;
  boxes.sort((p, q) => p.box.top - q.box.top);
  const left = Math.min(...boxes.map(({ box }) => box.left)), right = Math.max(...boxes.map(({ box }) => box.right));
  const parts = [];
  let moved = 0, end = -Infinity; // blocks side by side stay so; what lies between rows of blocks is closed up
  for (const { block, box } of boxes) {
    if (end === -Infinity) moved = GAP - box.top;
    else if (box.top > end + GAP) moved -= box.top - end - GAP;
    end = Math.max(end, box.bottom);
    parts.push(...pictures(block, GAP - left, moved), ...texts(block, GAP - left, moved));
  }
  const ink = getComputedStyle(document.body);
  const size = { width: Math.ceil(right - left + 2 * GAP), height: Math.ceil(end + moved + GAP) };
  const text = `<svg xmlns="http://www.w3.org/2000/svg" width="${size.width}" height="${size.height}" viewBox="0 0 ${size.width} ${size.height}">`
    + `<rect width="100%" height="100%" fill="${ink.backgroundColor}"/>${parts.join("")}</svg>`;
  return { text, ...size };
}

/** The pictures in an element, moved by dx and dy. */
function pictures(block, dx, dy) {
  return [...block.querySelectorAll("svg")].filter((svg) => svg.getBoundingClientRect().width > 0 && !svg.closest(".katex")).map((svg) => {
    const box = svg.getBoundingClientRect(), clone = withInlineStyles(svg);
    for (const [name, value] of Object.entries({ x: box.left + dx, y: box.top + dy, width: box.width, height: box.height, overflow: "visible" })) clone.setAttribute(name, value);
    return new XMLSerializer().serializeToString(clone);
  });
}

/** The lines of text in an element, outside of its pictures, moved by dx and dy. */
function texts(block, dx, dy) {
  const found = [], walker = document.createTreeWalker(block, NodeFilter.SHOW_TEXT);
  for (let node = walker.nextNode(); node; node = walker.nextNode()) {
    const holder = node.parentElement;
    if (!node.data.trim() || holder.closest("svg") || holder.closest(LEFT_OUT)) continue;
    const style = getComputedStyle(holder);
    for (const { text, box } of lines(node)) {
      const size = parseFloat(style.fontSize), y = box.top + dy + box.height / 2 + 0.35 * size;
      found.push(`<text x="${(box.left + dx).toFixed(2)}" y="${y.toFixed(2)}" font-size="${size}" font-weight="${style.fontWeight}" font-style="${style.fontStyle}" `
        + `font-family="${escaped(style.fontFamily).replace(/"/g, "'")}" fill="${style.color}" textLength="${box.width.toFixed(2)}" lengthAdjust="spacingAndGlyphs">${escaped(text)}</text>`);
    }
  }
  return found;
}

/** The lines into which a text node is broken, each with its box. */
function lines(node) {
  const range = document.createRange(), found = [];
  for (const word of node.data.matchAll(/\S+\s*/g)) {
    range.setStart(node, word.index);
    range.setEnd(node, word.index + word[0].trimEnd().length);
    const box = range.getBoundingClientRect();
    if (!box.width) continue;
    const last = found.at(-1);
    if (last && Math.abs(last.top - box.top) < 2) last.to = word.index + word[0].trimEnd().length;
    else found.push({ from: word.index, to: word.index + word[0].trimEnd().length, top: box.top });
  }
  return found.map(({ from, to }) => {
    range.setStart(node, from);
    range.setEnd(node, to);
    return { text: node.data.slice(from, to), box: range.getBoundingClientRect() };
  });
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
  return text.replace(/[&<>]/g, (c) => ({ "&": "&amp;", "<": "&lt;", ">": "&gt;" })[c]).replace(/\s+/g, " ");
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

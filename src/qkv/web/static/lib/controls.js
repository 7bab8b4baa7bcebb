// Controls, figures and messages that every page uses.
import { html, useEffect, useRef, useState } from "./html.js";
import { number, typed as writtenOut } from "./numbers.js";

let made = 0;
/** A unique id for an element. */
export function useId(stem) {
  const id = useRef(null);
  id.current ??= `${stem}-${++made}`;
  return id.current;
}

const STEPS = 400;
export const START_OVER = "qkv-start-over"; // an event of the window, at which every box forgets what was typed and refused

/** A labelled slider with a number box. With `log` its scale is logarithmic; with `zero` its lowest position is 0. */
export function Slider({ label, hint, value, min, max, step = "any", log = false, zero = false, onInput, name }) {
  const id = useId("slider");
  const low = Math.log(min), high = Math.log(max);
  const position = !log ? value : value <= min && zero ? 0 : Math.round((STEPS * (Math.log(Math.max(value, min)) - low)) / (high - low));
  const valueOf = (p) => {
    if (!log) return p;
    if (zero && p <= 0) return 0;
    return p >= STEPS ? max : Number(Math.exp(low + ((high - low) * p) / STEPS).toPrecision(3));
  };
  const range = log ? { min: 0, max: STEPS, step: 1 } : { min, max, step };
  return html`<div class="slider" data-name=${name}>
    <label for=${id}>${label}</label>
    <${Box} value=${value} min=${zero ? 0 : min} max=${max} whole=${!log && step === 1} label=${typeof label === "string" ? label : hint} onInput=${onInput} />
    <input id=${id} type="range" ...${range} value=${position} aria-valuetext=${number(value)}
      onInput=${(e) => onInput(valueOf(Number(e.target.value)))} />
    ${hint && html`<small>${hint}</small>`}
  </div>`;
}

/** A box for a number. Text that is not a number in range stays, is named below the box, and is not passed on. */
export function Box({ value, min = -Infinity, max = Infinity, whole = false, label, onInput, name }) {
  const id = useId("box");
  const [typed, setTyped] = useState(null);
  const sent = useRef(value);
  useEffect(() => { if (value !== sent.current) { sent.current = value; setTyped(null); } }, [value]); // changed elsewhere, by a slider or a link
  useEffect(() => {
    const forget = () => setTyped(null);
    addEventListener(START_OVER, forget);
    return () => removeEventListener(START_OVER, forget);
  }, []);
  const good = (x) => Number.isFinite(x) && x >= min && x <= max && (!whole || Number.isInteger(x));
  const wrong = typed !== null && !good(readNumber(typed));
  const take = (text) => {
    setTyped(text);
    const x = readNumber(text);
    if (good(x)) { sent.current = x; onInput(x); }
  };
  const leave = () => { if (!wrong) setTyped(null); };
  return html`<input class="box" type="text" inputmode="decimal" autocomplete="off" aria-label=${`${label}, as a number`} data-name=${name}
    value=${typed ?? writtenOut(value)} aria-invalid=${wrong} aria-describedby=${wrong ? id : null}
    onInput=${(e) => take(e.target.value)} onBlur=${leave} onKeyDown=${(e) => e.key === "Enter" && leave()} />
    ${wrong && html`<small class="wrong" id=${id} role="alert">${typed.trim() ? `“${typed.trim().slice(0, 20)}” cannot be used` : "Nothing is given"}: ${expected(min, max, whole)}. ${writtenOut(value)} stays in use.</small>`}`;
}

function expected(min, max, whole) {
  return `give a ${whole ? "whole " : ""}number${min > -Infinity ? ` from ${number(min)}` : ""}${max < Infinity ? ` to ${number(max)}` : ""}`;
}

/** Parses a number such as 0.5, 1e-6, 1/3 or −2; NaN for anything else. Nothing is evaluated. */
export function readNumber(text) {
  const plain = text.trim().replace(/−/g, "-");
  const parts = /^([^/]+)\/([^/]+)$/.exec(plain);
  if (parts) return readNumber(parts[1]) / readNumber(parts[2]);
  return /^[-+]?(\d+\.?\d*|\.\d+)(e[-+]?\d+)?$/i.test(plain) ? Number(plain) : NaN;
}

/** A choice between a few options, as radio buttons. */
export function Choice({ label, value, options, onInput }) {
  const id = useId("choice");
  return html`<fieldset class="choice"><legend>${label}</legend><div>
    ${options.map(([key, text]) => html`<label><input type="radio" name=${id} value=${key} checked=${key === value} onChange=${() => onInput(key)} /><span>${text}</span></label>`)}
  </div></fieldset>`;
}

/** A choice between many options. */
export function Select({ label, value, options, onInput, name }) {
  const id = useId("select");
  return html`<div class="select"><label for=${id}>${label}</label>
    <select id=${id} data-name=${name} value=${value} onChange=${(e) => onInput(e.target.value)}>
      ${options.map(([key, text]) => html`<option value=${key} selected=${key === value}>${text}</option>`)}
    </select></div>`;
}

/** An error message. */
export function Problem({ error }) {
  return error ? html`<p class="problem" role="alert">${error.message}</p>` : null;
}

/** A figure with a title and a caption; its SVG elements can be downloaded. */
export function Figure({ title, caption, children, className = "" }) {
  return html`<figure class=${className}>
    ${title && html`<h2>${title}</h2>`}
    ${children}
    ${caption && html`<figcaption>${caption}</figcaption>`}
  </figure>`;
}

/** A list of named values. */
export function Facts({ rows }) {
  return html`<dl class="facts">${rows.filter(Boolean).map(([name, value, key]) => html`<div><dt>${name}</dt><dd data-fact=${key ?? name}>${value}</dd></div>`)}</dl>`;
}

/** A sentence for screen readers, announced once it has not changed for half a second. */
export function Announcement({ children }) {
  const [said, setSaid] = useState("");
  const text = [children].flat().join("");
  useEffect(() => {
    const timer = setTimeout(() => setSaid(text), 500);
    return () => clearTimeout(timer);
  }, [text]);
  return html`<p class="unseen" aria-live="polite">${said}</p>`;
}

// Home: what qkv is for, a lookup that moves, and one card per question with a first task.
import { html, useEffect, useMemo, useRef, useState } from "../lib/html.js";
import { useFetch } from "../lib/api.js";
import { labelOf, normals, round, valueOf } from "../lib/items.js";
import { share, typed } from "../lib/numbers.js";
import { read, weightDraws } from "../lib/attention.js";
import { Announcement, Slider } from "../lib/controls.js";
import { Term } from "../lib/terms.js";
import { LookupPicture } from "./home_picture.js";

const KEYS = [[1, 0.25], [0.2, 1], [-0.95, 0.5], [-0.6, -0.85], [0.65, -0.8]];
const MEMORY = { keys: KEYS, values: KEYS.map((_, i) => valueOf(i)), labels: KEYS.map((_, i) => labelOf(i)) };
const NOISE = 0.15, N_DRAWS = 40;
const TURN_SECONDS = 24, SCALE_SECONDS = 15; // of one turn of the query, and of one rise and fall of the scale
const STILL = { angle: 0.62, scale: 6 };
const MAX_SCALE = 12;

/** Query and scale after so many seconds of the animation. */
export function stateAt(seconds) {
  const angle = STILL.angle + (2 * Math.PI * seconds) / TURN_SECONDS;
  const scale = round(STILL.scale + 5 * Math.sin((2 * Math.PI * seconds) / SCALE_SECONDS), 2); // as the box and the sentence show it
  return { query: [Math.cos(angle), Math.sin(angle)], scale };
}

export function Page() {
  return html`<div class="home">
    <div class="hero">
      <div class="pitch">
        <h1>See what attention looks up, and when to trust it</h1>
        <p class="lead">Attention, the part of a language model that fetches what the next word needs, is a lookup: a <${Term} name="query" /> is compared with every <${Term} name="key" />, and the answer is an average of
          the <${Term} name="value">values<//>. qkv is a workbench for this lookup, for people who learn, teach, take apart or serve such models: see what a <${Term} name="head" /> reads, get the query that reads what you want, with a proof,
          and find out when noise or training spoils it.</p>
        <p class="row"><a class="act main" href="#/lookup">Start with Lookup</a> <a class="act" href="docs/">Read the documents</a></p>
      </div>
      <${Moving} />
    </div>
    <h2 class="ask">What do you want to know?</h2>
    <${Cards} />
  </div>`;
}

/** The picture: a query that moves over five keys, the weights and the output that follow, and readings under noise. */
function Moving() {
  const calm = useMemo(() => matchMedia("(prefers-reduced-motion: reduce)").matches, []);
  const [playing, setPlaying] = useState(!calm);
  const [{ query, scale }, setState] = useState(() => stateAt(0));
  const seconds = useRef(0), figure = useRef(null), live = useRef(playing);
  const play = (on) => { live.current = on; setPlaying(on); }; // a frame that is due already must not undo what is typed
  useEffect(() => {
    if (!playing) return undefined;
    let frame = null, last = null;
    const step = (now) => {
      if (!live.current) return;
      seconds.current += last === null ? 0 : Math.min(now - last, 100) / 1000; // a tab that was hidden goes on where it was
      last = now;
      setState(stateAt(seconds.current));
      frame = requestAnimationFrame(step);
    };
    const watch = new IntersectionObserver(([seen]) => { // out of sight it rests
      cancelAnimationFrame(frame);
      last = null;
      if (seen.isIntersecting) frame = requestAnimationFrame(step);
    });
    watch.observe(figure.current);
    return () => { watch.disconnect(); cancelAnimationFrame(frame); };
  }, [playing]);
  const take = (patch) => { play(false); setState((old) => ({ ...old, ...patch })); };
  const draws = useMemo(() => {
    const next = normals(11);
    return Array.from({ length: N_DRAWS }, () => KEYS.map(() => [next(), next()]));
  }, []);
  const { weights, output } = read(MEMORY, query, scale);
  const top = weights.indexOf(Math.max(...weights)), label = MEMORY.labels[top];
  const drawn = weightDraws(MEMORY, query, scale, top, NOISE, draws);
  const least = Math.min(...drawn), most = Math.max(...drawn);
  return html`<figure class="moving" ref=${figure} onfocusin=${(e) => { if (!e.target.closest(".play > button")) play(false); }} data-playing=${String(playing)} data-query=${JSON.stringify(query)} data-scale=${scale}>
    <${LookupPicture} ...${{ memory: MEMORY, query, weights, output, drawn, top }} onQuery=${(q) => take({ query: q })} />
    <figcaption>
      <p data-fact="reading">At <${Term} name="scale" /> ${typed(scale)} the query reads ${equally(weights) ? html`${equally(weights)}: <b>${share(weights[top])}</b> of each.`
        : html`<b>${share(weights[top])}</b> of ${label}, and <b>${share(1 - weights[top])}</b> of other items.`}</p>
      <p data-fact="trust">With noise on the keys, ${N_DRAWS} readings give ${label} between <b>${share(least)}</b> and <b>${share(most)}</b>: ${trust(least, most)}.</p>
      <div class="play" data-unpictured><button class="act" onClick=${() => play(!playing)}>${playing ? "Pause" : "Play"}</button>
        <${Slider} name="scale" label="Scale" value=${scale} min=${0} max=${MAX_SCALE} step=${0.1} onInput=${(s) => take({ scale: s })} /></div>
    </figcaption>
    ${!playing && html`<${Announcement}>Weight of ${label}: ${share(weights[top])}. With noise between ${share(least)} and ${share(most)}.<//>`}
  </figure>`;
}

/** That all items are read equally, or so to the digits shown; empty where they are not. */
export function equally(weights) {
  if (weights.every((w) => w === weights[0])) return "all items equally";
  return weights.every((w) => share(w) === share(weights[0])) ? "all items equally to three decimals" : "";
}

/** What the range of a weight under noise means, in words. */
export function trust(least, most) {
  const range = most - least;
  return range < 0.1 ? "this reading is steady" : range < 0.4 ? "this reading wavers" : "do not trust this reading";
}

const CLAIM = "```claim sharper\ngiven k_1..k_n orthonormal, n >= 3\nlet q = t*(k_a + k_b)\nthen alpha_a -> 1/2 as t -> oo\nthen alpha_a -> 1 as t -> oo\n```\n";

/** One card per question: where to find the answer, and a first task whose state is prepared. */
export function cardsOf(models) {
  return [
    { question: "What does attention look up?", page: "Lookup", link: `#/lookup?${new URLSearchParams({ layout: "inside", n: 7, wanted: '{"a":1}' })}`,
      answer: "Move a query over keys and follow every number from score to output. Ask for an item, or for a blend, and get the query with a certificate.",
      task: "The key of a is between the others. Press “Copy this”: no query can read it alone, and you see the proof." },
    { question: "What does noise do?", page: "Noise", link: "#/noise?along=2",
      answer: "Put noise on the keys and get the exact spread of what is read, for one head, several heads, and the query with the least total variance of all weights.",
      task: "Raise the scale to 20. Compare how the variance of one head and of the min-variance query change." },
    { question: "Is my answer right?", page: "Claims", link: `#/claims?${new URLSearchParams({ text: CLAIM })}`,
      answer: "Write down what you believe about attention. Each statement is proved, refuted with numbers, or left open.",
      also: ["#/sheets", "Or give it a whole answer sheet, as you wrote it, on Sheets"],
      task: "Two limits are claimed and one is wrong. Change its number until both are proved." },
    { question: "What does my model’s head do?", page: "Heads", link: "#/heads",
      answer: "See which tokens every head of a model reads in a text, what kind of lookup that is, how firmly it holds, and how few bits its keys need.",
      command: "qkv serve --model FOLDER", more: "docs/heads",
      task: "Move the token that looks. Find the head that reads what followed an earlier copy of it." },
    { question: "Can a head be built to my rules?", page: "Wiring", link: "#/wiring?beta=0.8",
      answer: "Say what each token should read and write, and get Q, K and V that do it, or a proof that none do.",
      task: "With β = 0.8 both rules fail. Raise β until both are met." },
    { question: "What does it remember?", page: "Knowledge", link: "#/knowledge",
      answer: "Ask a model that was trained on facts. A badge says whether an answer is remembered or made up, with the evidence.",
      ...(models?.length ? { task: `Ask the model ${models[0].name} something, and look at the badge.` }
        : { takes: "a few minutes", task: "Press “Train” for a small model of your own, then ask it about someone it has not read about." }) },
  ];
}

function Cards() {
  const { reply } = useFetch("api/models");
  return html`<ol class="cards">${cardsOf(reply?.models).map((card) => html`<li key=${card.page} class="card">
    <h3>${card.question}</h3>
    <p>${card.answer}${card.command && html` <a href=${card.more}><code>${card.command}</code></a>`}</p>
    <p class="task"><b>First task, ${card.takes ?? "30 seconds"}:</b> ${card.task}</p>
    <p class="links"><a href=${card.link}>Try it on ${card.page}</a>${card.also && html` <a class="also" href=${card.also[0]}>${card.also[1]}</a>`}</p>
  </li>`)}</ol>`;
}

// Terms that are explained where they stand: a button in the text that opens one sentence, by mouse, touch or keyboard.
import { html, useEffect, useLayoutEffect, useRef, useState } from "./html.js";
import { useId } from "./controls.js";

const MEANINGS = {
  key: "A vector that says what an item of the memory can be found by. The query is compared with every key.",
  query: "The vector that asks. Its dot product with a key, times the scale, is the score of that item.",
  value: "A vector that says what an item of the memory holds. The output is an average of the values.",
  weight: "The share of an item in the output: e to its score, divided by the sum of that over all items. Weights sum to 1.",
  score: "The dot product of key and query, times the scale.",
  output: "What attention returns: the average of the values, each counted by its weight.",
  leak: "The weight that falls on items that are not wanted.",
  scale: "The factor by which every dot product of key and query is multiplied to give the score. A larger scale moves the weight to the items with the highest score.",
  distance: "Total variation: half the sum of the differences between the weights that are read and those that are wanted. 0 is equal, 1 is disjoint.",
  noise: "Keys that vary from one reading to the next: a random vector is added to each.",
  head: "One query over one memory, with its own weights and output.",
  variance: "The mean squared deviation of the weight from its mean, over the noise on the keys.",
  "min-variance query": "Of the queries with the same weights when nothing varies, the one with the least sum of the variances of all weights under this noise, found by a search. The weight of one item alone may vary less with another query.",
  "radius of success": "A reading is a success if its output lies within this Euclidean distance of the wanted average.",
};

/** A term, or `children` in its place, that explains itself. Escape or a click elsewhere closes the explanation. */
export function Term({ name, children }) {
  const id = useId("term");
  const [open, setOpen] = useState(false);
  const [shift, setShift] = useState(0);
  const place = useRef(null);
  useEffect(() => {
    if (!open) return undefined;
    const outside = (event) => { if (!place.current?.contains(event.target)) setOpen(false); };
    const escape = (event) => { if (event.key === "Escape") setOpen(false); };
    document.addEventListener("pointerdown", outside);
    document.addEventListener("keydown", escape);
    return () => { document.removeEventListener("pointerdown", outside); document.removeEventListener("keydown", escape); };
  }, [open]);
  useLayoutEffect(() => { // keep the explanation inside the page
    if (!open) return setShift(0);
    const box = place.current.querySelector(".meaning").getBoundingClientRect(), room = document.documentElement.clientWidth - 12;
    return setShift(Math.min(0, room - box.right + shift) || 0);
  }, [open]);
  return html`<span class="term" ref=${place}><button type="button" aria-expanded=${open} aria-controls=${id} onClick=${() => setOpen(!open)}>${children ?? name}</button><span
    class="meaning" id=${id} role="note" hidden=${!open} style=${{ left: `${shift}px` }}>${MEANINGS[name]}</span></span>`;
}

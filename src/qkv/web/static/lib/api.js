// Talking to the server: one request in flight for what is on screen, the newest wish waiting behind it.
import { useEffect, useLayoutEffect, useRef, useState } from "../vendor/htm-preact.js";
import { capital } from "./names.js";

/** A refusal, as a sentence for the page. */
export class Refusal extends Error {
  constructor(message, status) {
    super(message);
    this.status = status;
  }
}

/** One request; a reply that is not 2xx, or none at all, becomes a Refusal. */
export async function ask(path, body, { method = body === undefined ? "GET" : "POST", signal } = {}) {
  const options = { method, signal, headers: { accept: "application/json" } };
  if (body !== undefined) {
    options.headers["content-type"] = "application/json";
    options.body = JSON.stringify(body);
  }
  let response;
  try {
    response = await fetch(path, options);
  } catch (failure) {
    if (failure.name === "AbortError") throw failure;
    throw new Refusal("The server does not answer. Is qkv serve still running?", 0);
  }
  if (response.status === 204) return null;
  const reply = await response.json().catch(() => null);
  if (!response.ok) throw new Refusal(sentence(reply, response.status), response.status);
  return reply;
}

function sentence(reply, status) {
  const error = reply?.error;
  if (!error) return `The server refused this (${status}).`;
  return capital(`${error.asked}: ${error.came}. ${error.try}.`);
}

/**
 * The reply to `body`, kept current: while one request is in flight only the newest wish waits, so that a fast slider
 * never queues, and replies can only arrive in order. A wish that has waited long aborts what it waits for.
 * The last good reply stays on screen beside an error. A null body asks nothing. `current` says whether what is
 * shown, reply or error, is for this body.
 */
export function useReply(path, body, { patience = 1500, delay = 0 } = {}) {
  const [shown, setShown] = useState({ reply: null, error: null, busy: body !== null, of: null });
  const flight = useRef(null);
  const wish = useRef(null);
  const text = body === null ? null : JSON.stringify(body);

  const start = () => {
    const sent = wish.current;
    wish.current = null;
    if (sent === null) return;
    const control = new AbortController();
    const mine = { control, since: performance.now() };
    flight.current = mine;
    setShown((old) => ({ ...old, busy: true }));
    ask(path, JSON.parse(sent), { signal: control.signal }).then(
      (reply) => ({ reply, error: null, of: sent }),
      (error) => ({ error, of: sent }),
    ).then((found) => {
      if (flight.current !== mine) return; // late: something newer has taken its place
      flight.current = null;
      if (found.error?.name !== "AbortError") setShown((old) => ({ ...old, ...found, busy: wish.current !== null }));
      start();
    });
  };

  // Before the browser paints: the slider is drawn in its new place while the request is already on its way.
  useLayoutEffect(() => {
    if (text === null) return undefined;
    let overdue;
    const want = () => {
      wish.current = text;
      if (flight.current === null) return start();
      const left = patience - (performance.now() - flight.current.since);
      overdue = setTimeout(() => {
        if (wish.current !== text || flight.current === null) return;
        flight.current.control.abort();
        flight.current = null;
        start();
      }, Math.max(left, 0));
    };
    const timer = delay ? setTimeout(want, delay) : want();
    return () => { clearTimeout(timer); clearTimeout(overdue); };
  }, [path, text]);
  useEffect(() => () => {
    wish.current = null;
    flight.current?.control.abort();
    flight.current = null;
  }, []);
  return { ...shown, current: text === null || shown.of === text };
}

/** Something that is fetched once. */
export function useOnce(path) {
  const [shown, setShown] = useState({ reply: null, error: null });
  useEffect(() => {
    const control = new AbortController();
    ask(path, undefined, { signal: control.signal }).then(
      (reply) => setShown({ reply, error: null }),
      (error) => error.name === "AbortError" || setShown({ reply: null, error }),
    );
    return () => control.abort();
  }, [path]);
  return shown;
}

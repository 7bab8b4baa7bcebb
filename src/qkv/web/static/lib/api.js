// Requests to the server: at most one in flight per view, and only the newest further one waits.
import { useEffect, useLayoutEffect, useRef, useState } from "./html.js";
import { capitalise, withFullStop } from "./text.js";

/** A refusal of the server, as a sentence. */
export class Refusal extends Error {
  constructor(message, status) {
    super(message);
    this.status = status;
  }
}

/** One request; a reply that is not 2xx, or no reply, throws a Refusal. */
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
    throw new Refusal("The server does not reply. Is qkv serve still running?", 0);
  }
  if (response.status === 204) return null;
  const reply = await response.json().catch(() => null);
  if (!response.ok) throw new Refusal(sentence(reply, response.status), response.status);
  return reply;
}

function sentence(reply, status) {
  return reply?.error ? refusalText(reply.error) : `The server refused this (${status}).`;
}

/** The fields of a refusal as one sentence. */
export function refusalText({ request, problem, hint }) {
  return capitalise(`${request}: ${withFullStop(problem)} ${withFullStop(hint)}`);
}

/**
 * The reply to `body`, kept up to date. While one request is in flight only the newest body waits, so that a fast
 * slider builds no queue and replies arrive in order; a body that waits for more than `patience` ms aborts the request
 * in flight. After an error the last good reply stays. A null body sends nothing. `current` tells whether the reply or
 * error is for this body.
 */
export function useReply(path, body, { patience = 1500, delay = 0 } = {}) {
  const [shown, setShown] = useState({ reply: null, error: null, busy: body !== null, of: null });
  const flight = useRef(null);
  const next = useRef(null);
  const text = body === null ? null : JSON.stringify(body);

  const start = () => {
    const sent = next.current;
    next.current = null;
    if (sent === null) return;
    const control = new AbortController();
    const mine = { control, since: performance.now() };
    flight.current = mine;
    setShown((old) => ({ ...old, busy: true }));
    ask(path, JSON.parse(sent), { signal: control.signal }).then(
      (reply) => ({ reply, error: null, of: sent }),
      (error) => ({ error, of: sent }),
    ).then((found) => {
      if (flight.current !== mine) return; // superseded by a newer request
      flight.current = null;
      if (found.error?.name !== "AbortError") setShown((old) => ({ ...old, ...found, busy: next.current !== null }));
      start();
    });
  };

  // In a layout effect, so that the request is sent before the browser paints the new position of the slider.
  useLayoutEffect(() => {
    if (text === null) return undefined;
    let overdue;
    const want = () => {
      next.current = text;
      if (flight.current === null) return start();
      const left = patience - (performance.now() - flight.current.since);
      overdue = setTimeout(() => {
        if (next.current !== text || flight.current === null) return;
        flight.current.control.abort();
        flight.current = null;
        start();
      }, Math.max(left, 0));
    };
    const timer = delay ? setTimeout(want, delay) : want();
    return () => { clearTimeout(timer); clearTimeout(overdue); };
  }, [path, text]);
  useEffect(() => () => {
    next.current = null;
    flight.current?.control.abort();
    flight.current = null;
  }, []);
  return { ...shown, current: text === null || shown.of === text };
}

/** The reply to one GET request. */
export function useFetch(path) {
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

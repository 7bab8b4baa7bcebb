// The fragment of the address holds the page and its state, so that a link restores both.
import { useCallback, useEffect, useRef, useState } from "../vendor/htm-preact.js";

/** The fragment without its "#", kept up to date. */
export function useHash() {
  const [hash, setHash] = useState(location.hash.slice(1));
  useEffect(() => {
    const changed = () => setHash(location.hash.slice(1));
    addEventListener("hashchange", changed);
    return () => removeEventListener("hashchange", changed);
  }, []);
  return hash;
}

/** The page that a fragment names; the first page if it names none. */
export function pageOf(hash, pages) {
  const name = hash.replace(/^\//, "").split("?")[0];
  return pages.some((p) => p.name === name) ? name : pages[0].name;
}

/** A query string of what differs from the defaults. */
export function toQuery(state, defaults) {
  const query = new URLSearchParams();
  for (const [name, value] of Object.entries(state)) {
    const text = typeof value === "string" ? value : JSON.stringify(value);
    const usual = typeof defaults[name] === "string" ? defaults[name] : JSON.stringify(defaults[name]);
    if (text !== usual && text !== undefined) query.set(name, text);
  }
  return query.toString();
}

/** The state in a query string; unknown names, and values of another type than the default, are ignored. */
export function fromQuery(text, defaults) {
  const state = { ...defaults };
  for (const [name, value] of new URLSearchParams(text)) {
    if (!(name in defaults)) continue;
    const usual = defaults[name];
    if (typeof usual === "string") { state[name] = value; continue; }
    try {
      const found = JSON.parse(value);
      if (usual === null || sameKind(found, usual)) state[name] = found;
    } catch { /* a value that cannot be parsed gives the default */ }
  }
  return state;
}

function sameKind(found, usual) {
  if (typeof usual === "number") return typeof found === "number" && Number.isFinite(found);
  if (Array.isArray(usual)) return Array.isArray(found);
  return found !== null && typeof found === typeof usual;
}

/** The state of a page, read from the address, and written back 150 ms after the last change. */
export function useUrlState(page, defaults) {
  const read = () => fromQuery(location.hash.split("?").slice(1).join("?"), defaults);
  const [state, setState] = useState(read);
  const own = useRef(location.hash);
  useEffect(() => {
    const changed = () => {
      if (location.hash !== own.current && location.hash.startsWith(`#/${page}`)) setState(read());
    };
    addEventListener("hashchange", changed);
    return () => removeEventListener("hashchange", changed);
  }, []);
  useEffect(() => {
    const write = () => {
      const query = toQuery(state, defaults);
      own.current = `#/${page}${query ? `?${query}` : ""}`;
      history.replaceState(null, "", own.current);
    };
    const timer = setTimeout(write, 150);
    return () => clearTimeout(timer);
  }, [state]);
  const patch = useCallback((change) => setState((old) => ({ ...old, ...(typeof change === "function" ? change(old) : change) })), []);
  return [state, patch];
}

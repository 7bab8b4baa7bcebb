// The address holds the page and its state, so that a link restores what was seen.
import { useCallback, useEffect, useRef, useState } from "../vendor/htm-preact.js";

/** The hash without its "#", kept current. */
export function useHash() {
  const [hash, setHash] = useState(location.hash.slice(1));
  useEffect(() => {
    const changed = () => setHash(location.hash.slice(1));
    addEventListener("hashchange", changed);
    return () => removeEventListener("hashchange", changed);
  }, []);
  return hash;
}

/** Which of the pages a hash names; the first one where it names none. */
export function pageOf(hash, pages) {
  const name = hash.replace(/^\//, "").split("?")[0];
  return pages.some((p) => p.name === name) ? name : pages[0].name;
}

/** The part of the state that differs from the defaults, as a query string. */
export function written(state, defaults) {
  const query = new URLSearchParams();
  for (const [name, value] of Object.entries(state)) {
    const text = typeof value === "string" ? value : JSON.stringify(value);
    const usual = typeof defaults[name] === "string" ? defaults[name] : JSON.stringify(defaults[name]);
    if (text !== usual && text !== undefined) query.set(name, text);
  }
  return query.toString();
}

/** The state that a query string writes; what is unknown or of another kind than the default is left out. */
export function parsed(text, defaults) {
  const state = { ...defaults };
  for (const [name, value] of new URLSearchParams(text)) {
    if (!(name in defaults)) continue;
    const usual = defaults[name];
    if (typeof usual === "string") { state[name] = value; continue; }
    try {
      const found = JSON.parse(value);
      if (usual === null || sameKind(found, usual)) state[name] = found;
    } catch { /* a broken link gives the default */ }
  }
  return state;
}

function sameKind(found, usual) {
  if (typeof usual === "number") return typeof found === "number" && Number.isFinite(found);
  if (Array.isArray(usual)) return Array.isArray(found);
  return found !== null && typeof found === typeof usual;
}

/** A page's state, read from the address and written back to it once it has been still for a moment. */
export function useLink(page, defaults) {
  const read = () => parsed(location.hash.split("?").slice(1).join("?"), defaults);
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
      const query = written(state, defaults);
      own.current = `#/${page}${query ? `?${query}` : ""}`;
      history.replaceState(null, "", own.current);
    };
    const timer = setTimeout(write, 150);
    return () => clearTimeout(timer);
  }, [state]);
  const patch = useCallback((change) => setState((old) => ({ ...old, ...(typeof change === "function" ? change(old) : change) })), []);
  return [state, patch];
}

// The fragment of the address holds the page and its state, so that a link restores both. The browser tab remembers the
// last state of every page, so that it is there again after a visit to another one.
import { useCallback, useEffect, useRef, useState } from "./html.js";

/** /noise?n=5 becomes /#/noise?n=5, so that every page has one address. */
export function normaliseAddress(pages) {
  const name = location.pathname.split("/").at(-1);
  const root = new URL(".", location.href).pathname;
  if (!pages.some((p) => p.name === name)) return;
  history.replaceState(null, "", `${root}${location.hash.length > 1 ? location.hash : `#/${name}${location.search}`}`);
}

/** What the browser tab remembers under a name; null if it remembers nothing, or may not. */
export function recall(name) {
  try {
    return sessionStorage.getItem(`qkv ${name}`);
  } catch {
    return null;
  }
}

/** Let the browser tab remember a text; where it may not, the text is lost with the page. */
export function remember(name, text) {
  try {
    sessionStorage.setItem(`qkv ${name}`, text);
  } catch { /* storage is full or forbidden */ }
}

/** A state that the browser tab remembers, but that is no part of a link: a draft, or settings. */
export function useRemembered(name, initial) {
  const [state, setState] = useState(() => {
    try {
      return JSON.parse(recall(name)) ?? initial;
    } catch {
      return initial;
    }
  });
  useEffect(() => { remember(name, JSON.stringify(state)); }, [state]);
  return [state, setState];
}

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

/** The state of a page: from the address, or else as the browser tab remembers it. The address follows 150 ms after the last change. */
export function useUrlState(page, defaults) {
  const read = () => {
    const [, ...query] = location.hash.split("?");
    return fromQuery(query.length ? query.join("?") : recall(page) ?? "", defaults);
  };
  const [state, setState] = useState(read);
  const own = useRef(location.hash);
  const address = (query) => `#/${page}${query ? `?${query}` : ""}`;
  const opened = useRef(location.hash); // "", "#/" or an unknown name also open the first page
  const isHere = () => location.hash === opened.current || location.hash === `#/${page}` || location.hash.startsWith(`#/${page}?`);
  useEffect(() => {
    const changed = () => {
      if (location.hash !== own.current && isHere()) setState(read());
    };
    addEventListener("hashchange", changed);
    return () => removeEventListener("hashchange", changed);
  }, []);
  useEffect(() => {
    const query = toQuery(state, defaults);
    remember(page, query);
    const timer = setTimeout(() => {
      if (!isHere()) return; // a link to another page was followed, and this page is about to close
      own.current = address(query);
      history.replaceState(null, "", own.current);
    }, 150);
    return () => clearTimeout(timer);
  }, [state]);
  const patch = useCallback((change) => setState((old) => ({ ...old, ...(typeof change === "function" ? change(old) : change) })), []);
  return [state, patch];
}

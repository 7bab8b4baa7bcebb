// The application: navigation and eight pages. The module of a page is loaded when the page is first opened.
import { html, render, useEffect, useState } from "./lib/html.js";
import { normaliseAddress, pageOf, useHash } from "./lib/route.js";
import { Problem } from "./lib/controls.js";

const PAGES = [
  { name: "home", title: "Home" },
  { name: "lookup", title: "Lookup" },
  { name: "noise", title: "Noise" },
  { name: "wiring", title: "Wiring" },
  { name: "claims", title: "Claims" },
  { name: "sheets", title: "Sheets" },
  { name: "heads", title: "Heads" },
  { name: "knowledge", title: "Knowledge" },
];

normaliseAddress(PAGES);

function App() {
  const name = pageOf(useHash(), PAGES);
  const [loaded, setLoaded] = useState({});
  useEffect(() => {
    document.title = `${PAGES.find((p) => p.name === name).title} · qkv explorer`;
    if (loaded[name]?.Page) return;
    import(`./pages/${name}.js`).then(
      (module) => setLoaded((old) => ({ ...old, [name]: { Page: module.Page } })),
      (failure) => setLoaded((old) => ({ ...old, [name]: { failure } })),
    );
  }, [name]);
  const { Page, failure } = loaded[name] ?? {};
  return html`
    <a class="skip" href="#content" onClick=${skip}>Skip to content</a>
    <header class="bar">
      <a class="mark" href="#/home" aria-label="qkv explorer, home"><b>qkv</b> <span>explorer</span></a>
      <nav aria-label="Pages">
        ${PAGES.map((p) => html`<a href=${`#/${p.name}`} aria-current=${p.name === name ? "page" : null}>${p.title}</a>`)}
      </nav>
      <a class="docs" href="docs/">Documents</a>
    </header>
    <main id="content" tabindex="-1">
      ${failure && html`<${Problem} error=${{ message: "This page could not be loaded. Is qkv serve still running?" }} />`}
      ${Page && html`<${Page} key=${name} />`}
    </main>
    <footer><a href="docs/">Documents</a> <a href="api/openapi.json">API</a> <span>Everything is computed on this machine; nothing is sent elsewhere.</span></footer>`;
}

function skip(event) {
  event.preventDefault(); // the fragment of the address holds the state of the page
  document.getElementById("content").focus();
}

render(html`<${App} />`, document.getElementById("app"));

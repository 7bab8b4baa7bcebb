// Search by a link instead of a form: the explorer's Content-Security-Policy allows no form to be sent.
document.addEventListener("submit", (event) => {
  const form = event.target;
  if (form.method.toLowerCase() !== "get") return;
  event.preventDefault();
  const address = new URL(form.action);
  address.search = new URLSearchParams(new FormData(form)).toString();
  window.location.assign(address);
});

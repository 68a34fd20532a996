// What the pages do beyond links and forms: times in the viewer's zone, Ctrl-K, copying, and no surprises while one reads.
"use strict";

function localTimes(root) {
  for (const time of root.querySelectorAll("time[datetime]:not([data-local])")) {
    const moment = new Date(time.getAttribute("datetime"));
    if (Number.isNaN(moment.getTime())) continue;
    time.dataset.local = "1";
    time.title = time.textContent.trim() + " UTC";
    const parts = { hour: "2-digit", minute: "2-digit", second: time.dataset.seconds ? "2-digit" : undefined };
    const isToday = moment.toDateString() === new Date().toDateString();
    const clock = moment.toLocaleTimeString([], parts);
    time.textContent = isToday && !time.dataset.full ? clock : `${moment.toLocaleDateString("sv")} ${clock}`;
  }
}

document.addEventListener("DOMContentLoaded", () => localTimes(document));
document.addEventListener("htmx:afterSwap", (event) => localTimes(event.detail.target.parentNode || document));

// Whatever is opened stays open when its part of the page comes anew.
document.addEventListener("htmx:beforeSwap", (event) => {
  const open = [...event.detail.target.querySelectorAll("details[open][id]")].map((one) => one.id);
  if (!open.length) return;
  const text = event.detail.serverResponse;
  const page = new DOMParser().parseFromString(text, "text/html");
  for (const id of open) page.getElementById(id)?.setAttribute("open", "");
  event.detail.serverResponse = page.body.innerHTML;
});

document.addEventListener("keydown", (event) => {
  if ((event.ctrlKey || event.metaKey) && event.key.toLowerCase() === "k") {
    event.preventDefault();
    document.getElementById("search")?.focus();
  }
  if (event.key === "Enter" && (event.ctrlKey || event.metaKey) && event.target.matches("textarea.sql")) {
    event.target.form.requestSubmit();
  }
});

document.addEventListener("click", (event) => {
  const button = event.target.closest("button[data-copy]");
  if (button) {
    navigator.clipboard?.writeText(document.getElementById(button.dataset.copy).textContent.trim());
    button.textContent = "Copied";
  }
});

document.addEventListener("submit", (event) => {
  const words = event.target.dataset.confirm;
  if (words && !window.confirm(words)) event.preventDefault();
});

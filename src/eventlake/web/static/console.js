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

// A part of a page that comes anew is none the wiser for it: what is opened stays open, what is scrolled stays where it
// is, the keyboard stays where it was, and while somebody has marked words in it, it waits.
let before = null;

function name(part, root) {
  const near = part.closest("[id]");
  const home = near && root.contains(near) ? near : root;
  return [home.id, [...home.querySelectorAll(part.tagName)].indexOf(part)];
}

function again([id, place], tag) {
  return document.getElementById(id)?.querySelectorAll(tag)[place];
}

document.addEventListener("htmx:beforeSwap", (event) => {
  const target = event.detail.target;
  const marked = document.getSelection();
  if (marked && !marked.isCollapsed && target.contains(marked.anchorNode)) {
    event.detail.shouldSwap = false;
    return;
  }
  const focused = document.activeElement;
  const scrolled = [...target.querySelectorAll(".scroll, pre")].filter((one) => one.scrollLeft || one.scrollTop);
  before = {
    id: target.id,
    focused: target.contains(focused) && focused !== target ? [name(focused, target), focused.tagName] : null,
    scrolled: scrolled.map((one) => [name(one, target), one.tagName, one.scrollLeft, one.scrollTop]),
  };
  const open = [...target.querySelectorAll("details[open][id]")].map((one) => one.id);
  if (!open.length) return;
  const text = event.detail.serverResponse;
  const page = new DOMParser().parseFromString(text, "text/html");
  for (const id of open) page.getElementById(id)?.setAttribute("open", "");
  event.detail.serverResponse = page.body.innerHTML;
});

document.addEventListener("htmx:afterSwap", (event) => {
  if (!before || event.detail.target.id !== before.id) return;
  for (const [where, tag, left, top] of before.scrolled) again(where, tag)?.scrollTo(left, top);
  if (before.focused) again(...before.focused)?.focus({ preventScroll: true });
  before = null;
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

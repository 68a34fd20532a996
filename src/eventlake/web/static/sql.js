// Names of tables and columns, proposed while one writes a query. Arrow down goes to them, Enter or Tab takes one, Escape
// closes them; until then every key does what it always does.
"use strict";

(() => {
  const area = document.querySelector("textarea.sql[data-names]");
  const list = document.getElementById("names");
  const status = document.getElementById("names-status");
  if (!area || !list) return;
  let chosen = -1;
  let asked = 0;
  let timer = 0;

  const before = () => area.value.slice(0, area.selectionStart);
  const word = () => /[\w."]*$/.exec(before())[0];

  function close() {
    list.hidden = true;
    list.replaceChildren();
    chosen = -1;
    status.textContent = "";
    area.removeAttribute("aria-activedescendant");
  }

  function choose(number) {
    const options = [...list.children];
    chosen = Math.max(0, Math.min(number, options.length - 1));
    options.forEach((one, at) => one.setAttribute("aria-selected", String(at === chosen)));
    area.setAttribute("aria-activedescendant", options[chosen].id);
    options[chosen].scrollIntoView({ block: "nearest" });
  }

  function take(option) {
    const start = area.selectionStart - word().length;
    area.setRangeText(option.dataset.name, start, area.selectionStart, "end");
    close();
    area.focus();
  }

  function show(names) {
    close();
    if (!names.length) return;
    names.forEach(([name, kind], at) => {
      const option = document.createElement("li");
      const told = document.createElement("span");
      option.id = `name-${at}`;
      option.setAttribute("role", "option");
      option.setAttribute("aria-selected", "false");
      option.dataset.name = name;
      option.textContent = `${name} `;
      told.className = "dim small";
      told.textContent = kind;
      option.append(told);
      list.append(option);
    });
    list.hidden = false;
    status.textContent = `${names.length} names: arrow down`;
  }

  async function ask() {
    const mine = ++asked;
    const lake = area.form.elements.lake?.value || area.dataset.lake;
    const query = new URLSearchParams({ word: word(), q: area.value, lake });
    const answer = await fetch(`${area.dataset.names}?${query}`).catch(() => null);
    if (mine === asked && answer?.ok) show(await answer.json());
  }

  area.addEventListener("input", () => {
    clearTimeout(timer);
    asked += 1;
    if (word().length < 2) close();
    else timer = setTimeout(ask, 120);
  });

  area.addEventListener("keydown", (event) => {
    if (event.ctrlKey && event.key === " ") {
      event.preventDefault();
      ask();
    }
    if (list.hidden) return;
    const isChosen = chosen >= 0;
    if (event.key === "ArrowDown") choose(chosen + 1);
    else if (event.key === "ArrowUp" && isChosen) choose(chosen - 1);
    else if ((event.key === "Enter" && !event.ctrlKey && !event.metaKey || event.key === "Tab") && isChosen) take(list.children[chosen]);
    else {
      if (event.key === "Escape") close();
      return;
    }
    event.preventDefault();
  });

  list.addEventListener("mousedown", (event) => {
    event.preventDefault();
    const option = event.target.closest("[role=option]");
    if (option) take(option);
  });
  area.addEventListener("blur", close);
})();

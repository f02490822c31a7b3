"use strict";
(() => {
  const root = document.documentElement;
  const main = document.querySelector("main");
  const at = (id) => document.getElementById(id);
  const words = at("words"), count = at("count");
  const MOST = 5000; // hits that are marked
  const paints = typeof Highlight === "function" && CSS.highlights;
  let hits = [], place = -1, timer = 0, folded = [];
  root.classList.add("js");

  const unfold = (node) => {
    for (let at = node; at; at = at.parentElement) if (at.tagName === "DETAILS") at.open = true;
  };

  // A range from character `start` to `end` of what `unit` says.
  const range = (unit, start, end) => {
    const walk = document.createTreeWalker(unit, NodeFilter.SHOW_TEXT), found = document.createRange();
    let before = 0, begun = false;
    for (let node = walk.nextNode(); node; node = walk.nextNode()) {
      const after = before + node.length;
      if (!begun && start < after) { found.setStart(node, start - before); begun = true; }
      if (begun && end <= after) { found.setEnd(node, end - before); return found; }
      before = after;
    }
    return null;
  };

  const clear = () => {
    if (paints) { CSS.highlights.delete("hits"); CSS.highlights.delete("hit"); }
    for (const old of document.querySelectorAll(".found")) old.classList.remove("found");
  };

  const told = () => {
    count.textContent = words.value === "" ? "" : hits.length ? `${place + 1} of ${hits.length}${hits.length >= MOST ? "+" : ""}` : "none";
  };

  const search = () => {
    clear();
    hits = []; place = -1;
    const wanted = words.value.trim();
    if (wanted) {
      const form = new RegExp(wanted.replace(/[.*+?^${}()|[\]\\]/g, "\\$&").replace(/\s+/g, "\\s+"), "giu");
      for (const unit of main.querySelectorAll(".about, .turn > summary, .unit, .agent > summary, footer")) {
        // Of a call that holds a sub-agent only what is its own: the sub-agent's units come by themselves.
        const own = unit.querySelector(".agent") ? [...unit.children].filter((child) => !child.matches(".agent")) : [unit];
        for (const part of own) {
          for (const found of part.textContent.matchAll(form)) {
            if (hits.length < MOST) hits.push({ unit: part, start: found.index, end: found.index + found[0].length });
          }
        }
        if (hits.length >= MOST) break;
      }
      if (paints && hits.length) {
        CSS.highlights.set("hits", new Highlight(...hits.slice(0, 1000).map((hit) => range(hit.unit, hit.start, hit.end)).filter(Boolean)));
      }
      if (hits.length) go(0);
    }
    told();
  };

  const go = (to) => {
    if (!hits.length) return;
    place = (to + hits.length) % hits.length;
    const hit = hits[place], found = range(hit.unit, hit.start, hit.end);
    for (const old of document.querySelectorAll(".found")) old.classList.remove("found");
    const holder = found ? found.startContainer.parentElement : hit.unit;
    unfold(holder.closest("summary") ? holder.closest("summary").parentElement.parentElement : holder);
    if (paints && found) CSS.highlights.set("hit", new Highlight(found)); else hit.unit.classList.add("found");
    holder.scrollIntoView({ block: "center", inline: "nearest" });
    told();
  };

  const sought = () => { clearTimeout(timer); timer = 0; search(); };
  words.addEventListener("input", () => { clearTimeout(timer); timer = setTimeout(sought, 200); });
  words.addEventListener("keydown", (event) => {
    if (event.key === "Escape") { words.value = ""; sought(); }
    if (event.key !== "Enter") return;
    event.preventDefault();
    if (timer || place < 0) sought(); else go(place + (event.shiftKey ? -1 : 1));
  });
  at("next").addEventListener("click", () => go(place + 1));
  at("previous").addEventListener("click", () => go(place - 1));
  document.addEventListener("keydown", (event) => {
    if (event.key === "/" && !/^(INPUT|TEXTAREA)$/.test(event.target.tagName) && !event.ctrlKey && !event.metaKey) {
      event.preventDefault();
      words.focus();
    }
  });

  const all = (open) => { for (const one of main.querySelectorAll("details")) one.open = open; };
  at("unfold").addEventListener("click", () => all(true));
  at("fold").addEventListener("click", () => all(false));

  at("theme").addEventListener("click", () => {
    const dark = root.dataset.theme ? root.dataset.theme === "dark" : matchMedia("(prefers-color-scheme: dark)").matches;
    root.dataset.theme = dark ? "light" : "dark";
  });

  const arrive = () => {
    const named = location.hash.length > 1 && at(location.hash.slice(1));
    if (named && main.contains(named)) { unfold(named); named.scrollIntoView(); }
  };
  addEventListener("hashchange", arrive);
  main.addEventListener("click", (event) => { // the link in a summary names the turn and does not fold it
    const link = event.target.closest("summary a.number");
    if (link && link.hash === location.hash) arrive();
  });

  for (const box of main.querySelectorAll(".code")) {
    const button = document.createElement("button");
    button.type = "button"; button.className = "copy"; button.dataset.says = "Copy";
    button.setAttribute("aria-label", "Copy this text");
    box.append(button);
  }
  main.addEventListener("click", async (event) => {
    const button = event.target.closest("button.copy");
    if (!button) return;
    const text = button.parentElement.querySelector("code").textContent;
    try {
      await navigator.clipboard.writeText(text);
      button.dataset.says = "Copied";
    } catch {
      getSelection().selectAllChildren(button.parentElement.querySelector("code"));
      button.dataset.says = "Selected";
    }
    setTimeout(() => { button.dataset.says = "Copy"; }, 1500);
  });

  addEventListener("beforeprint", () => {
    folded = [...main.querySelectorAll("details:not([open])")];
    for (const one of folded) one.open = true;
  });
  addEventListener("afterprint", () => { for (const one of folded) one.open = false; folded = []; });

  if (matchMedia("(max-width: 60rem)").matches) at("turns").open = false;
  arrive();
})();

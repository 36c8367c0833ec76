// Two things a still page cannot do by itself: light up the lines a tag rests on, and find a user in a long list.
// Without this script each link still leads to the first of its lines.
"use strict";

const bar = document.getElementById("litbar");
let picked = null;
let lit = [];
let at = 0;

function clear() {
  document.querySelectorAll(".lit").forEach((node) => node.classList.remove("lit"));
  document.querySelectorAll(".picked").forEach((node) => node.classList.remove("picked"));
  if (bar) bar.hidden = true;
  picked = null;
  lit = [];
}

function show(place) {
  at = (place + lit.length) % lit.length;
  const isLong = lit[at].offsetHeight > window.innerHeight / 2;
  lit[at].scrollIntoView({ block: isLong ? "start" : "center", inline: "nearest" });
  lit[at].focus({ preventScroll: true });
}

function light(link) {
  clear();
  const types = new Set((link.dataset.types || "").split(" ").filter(Boolean));
  lit = link.dataset.lines.split(" ").map((id) => document.getElementById(id)).filter(Boolean);
  if (!lit.length) return;
  picked = link;
  lit.forEach((line) => {
    line.classList.add("lit");
    line.querySelectorAll("li[data-type]").forEach((item) => {
      if (!types.has(item.dataset.type)) return;
      item.classList.add("lit");
      item.closest("details").open = true;
    });
  });
  const tag = link.closest(".tag, .persona");
  if (tag) tag.classList.add("picked");
  bar.hidden = false;
  bar.querySelector("p").textContent = link.dataset.told;
  bar.querySelector("[data-do=next]").hidden = lit.length < 2;
  show(0);
}

document.addEventListener("click", (event) => {
  const link = event.target.closest("a[data-lines]");
  if (link) {
    event.preventDefault();
    light(link);
    return;
  }
  const button = event.target.closest("button[data-do]");
  if (!button) return;
  if (button.dataset.do === "next") show(at + 1);
  if (button.dataset.do === "back" && picked) {
    const tag = picked;
    tag.scrollIntoView({ block: "center" });
    tag.focus({ preventScroll: true });
  }
  if (button.dataset.do === "clear") {
    const tag = picked;
    clear();
    if (tag) tag.focus({ preventScroll: true });
  }
});

document.addEventListener("keydown", (event) => {
  if (event.key !== "Escape" || !picked) return;
  const tag = picked;
  clear();
  tag.scrollIntoView({ block: "center" });
  tag.focus({ preventScroll: true });
});

const search = document.getElementById("find");
if (search) {
  const entries = [...document.querySelectorAll("#people > li")].map((node) => [node, node.textContent.toLowerCase()]);
  const told = document.getElementById("found");
  const find = () => {
    const wanted = search.value.trim().toLowerCase();
    let count = 0;
    entries.forEach(([node, text]) => {
      node.hidden = !text.includes(wanted);
      count += node.hidden ? 0 : 1;
    });
    told.textContent = wanted ? `${count} of ${entries.length} users` : `${entries.length} users`;
  };
  search.addEventListener("input", find);
  document.querySelector(".find").hidden = false;
  find(); // a browser keeps what was typed when it goes back to the page
}

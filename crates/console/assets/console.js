// Renews a page that tells of the present, and finds pages behind the addresses of a NameNode's. Every page is whole without this.
"use strict";

const main = document.getElementById("main");

function note(text) {
  let shown = document.querySelector(".stale-note");
  if (!text) {
    if (shown) shown.remove();
    return;
  }
  if (!shown) {
    shown = document.createElement("p");
    shown.className = "stale-note";
    shown.setAttribute("role", "status");
    document.body.append(shown);
  }
  shown.textContent = text;
}

// A page is left alone while its reader types, selects or has something open.
function isInUse() {
  const active = document.activeElement;
  const types = active && main.contains(active) && /^(INPUT|SELECT|TEXTAREA)$/.test(active.tagName);
  const selection = window.getSelection();
  return types || (selection && !selection.isCollapsed) || main.querySelector("details[open]") !== null;
}

async function renew() {
  if (document.hidden || isInUse()) return;
  try {
    const answer = await fetch(location.href, { cache: "no-store", redirect: "error", signal: AbortSignal.timeout(20000) });
    if (!answer.ok) throw new Error("status " + answer.status);
    const fresh = new DOMParser().parseFromString(await answer.text(), "text/html").getElementById("main");
    if (!fresh || isInUse()) return;
    const focused = document.activeElement && main.contains(document.activeElement) ? document.activeElement.getAttribute("href") : null;
    main.replaceChildren(...fresh.childNodes);
    if (focused) {
      const again = [...main.querySelectorAll("a")].find((link) => link.getAttribute("href") === focused);
      if (again) again.focus({ preventScroll: true });
    }
    note("");
  } catch (error) {
    note("The server does not answer; these figures are old.");
  }
}

const period = Number(main.dataset.refresh || 0);
if (period > 0) setInterval(renew, period * 1000);

const moved = document.querySelector("[data-moved]");
if (moved) {
  let part = location.hash.slice(1);
  try {
    part = decodeURIComponent(part);
  } catch {
    // A percent sign that stands for itself.
  }
  const tabs = { "tab-datanode": "/data-servers", "tab-snapshot": "/snapshots", "tab-startup-progress": "/start", "tab-datanode-volume-failures": "/data-servers" };
  const path = part.startsWith("/") ? part : "/";
  location.replace(moved.dataset.moved === "health" ? tabs[part] || "/" : "/files" + path.split("/").map(encodeURIComponent).join("/"));
}

// Sends the chosen files one after the other, and tells how far each is.
function send(form, file) {
  return new Promise((resolve, reject) => {
    const request = new XMLHttpRequest();
    const [bar, told] = [form.querySelector("progress"), form.querySelector("output")];
    const overwrite = form.elements.overwrite.checked ? "?overwrite=true" : "";
    request.open("PUT", form.dataset.upload + "/" + encodeURIComponent(file.name) + overwrite);
    request.upload.addEventListener("progress", (event) => {
      bar.hidden = false;
      bar.value = event.total ? event.loaded / event.total : 0;
      told.textContent = file.name + ": " + Math.round(bar.value * 100) + " %";
    });
    request.addEventListener("load", () => {
      if (request.status === 201) return resolve();
      const page = new DOMParser().parseFromString(request.responseText, "text/html");
      const reason = page.querySelector("main .banner");
      reject(new Error(file.name + ": " + (reason ? reason.textContent : "status " + request.status)));
    });
    request.addEventListener("error", () => reject(new Error(file.name + ": the connection broke")));
    request.send(file);
  });
}

for (const form of document.querySelectorAll("form[data-upload]")) {
  form.hidden = false;
  form.addEventListener("submit", async (event) => {
    event.preventDefault();
    const button = form.querySelector("button");
    button.disabled = true;
    try {
      for (const file of form.elements.file.files) await send(form, file);
      location.reload();
    } catch (error) {
      form.querySelector("output").textContent = error.message;
      button.disabled = false;
    }
  });
}

// The review UI works without this. With it the page follows what happens,
// and lists can be walked with keys.
"use strict";
(() => {
  const news = document.getElementById("news");
  const say = (text) => { if (news) news.textContent = text; };

  // Keys, outside of fields. They can be turned off on the help page.
  const off = "readback-keys-off";
  const silent = () => { try { return localStorage.getItem(off) === "yes"; } catch { return false; } };
  const typing = (el) => el && (el.isContentEditable || /^(INPUT|TEXTAREA|SELECT)$/.test(el.tagName));
  const walk = (step) => {
    const all = [...document.querySelectorAll("[data-row] .go")];
    if (all.length === 0) return;
    const row = document.activeElement && document.activeElement.closest("[data-row]");
    const at = all.findIndex((a) => a.closest("[data-row]") === row);
    const next = all[Math.min(Math.max(at + step, 0), all.length - 1)];
    next.focus();
    next.closest("[data-row]").scrollIntoView({ block: "nearest" });
  };
  const keys = {
    j: () => walk(1),
    k: () => walk(-1),
    "/": () => { const f = document.querySelector("[data-find]"); if (f) { f.focus(); f.select(); } },
    i: () => location.assign("/inbox"),
    "?": () => location.assign("/help"),
  };
  document.addEventListener("keydown", (e) => {
    if (e.defaultPrevented || e.ctrlKey || e.metaKey || e.altKey || typing(e.target) || silent()) return;
    const act = keys[e.key];
    if (act) { e.preventDefault(); act(); }
  });
  const keysHelp = document.querySelector("[data-keys]");
  if (keysHelp) {
    const button = keysHelp.querySelector("[data-keys-switch]");
    const label = () => { button.textContent = silent() ? "Turn these keys on" : "Turn these keys off"; };
    button.addEventListener("click", () => { try { localStorage.setItem(off, silent() ? "no" : "yes"); } catch { /* it is not kept then */ } label(); });
    keysHelp.hidden = false;
    label();
  }

  // Times come in UTC, since the server does not know where the reviewer is. They are shown in the
  // reviewer's time, with UTC on hover. A time that is written relative to now keeps its words.
  const written = /^\d{4}-\d{2}-\d{2} \d{2}:\d{2}:\d{2}(\.\d+)?Z$/;
  const pad = (n) => String(n).padStart(2, "0");
  const moment = (t) => t.getFullYear() + "-" + pad(t.getMonth() + 1) + "-" + pad(t.getDate()) + " " + pad(t.getHours()) + ":" + pad(t.getMinutes()) + ":" + pad(t.getSeconds());
  const zone = (t) => (new Intl.DateTimeFormat(undefined, { timeZoneName: "short" }).formatToParts(t).find((p) => p.type === "timeZoneName") || {}).value || "";
  const local = (root) => {
    for (const el of root.querySelectorAll("time[datetime]")) {
      const at = new Date(el.getAttribute("datetime")), text = el.textContent.trim();
      if (Number.isNaN(at.getTime())) continue;
      if (written.test(text)) {
        el.title = text;
        el.textContent = moment(at) + " " + zone(at);
      } else if (written.test(el.title) && /^\d{2}:\d{2}:\d{2}\.\d+$/.test(text)) { // below the day in UTC
        el.textContent = moment(at).startsWith(el.title.slice(0, 10)) ? moment(at).slice(11) : moment(at);
      } else if (written.test(el.title)) {
        el.title = moment(at) + " " + zone(at) + ", " + el.title;
      }
    }
    for (const day of root.querySelectorAll(".date .quiet")) day.textContent = "day in UTC";
  };

  // A form that is on its way is not sent twice; the server would not take it
  // twice either.
  document.addEventListener("submit", (e) => {
    const form = e.target;
    if (!form.matches("[data-once]")) return;
    if (form.dataset.sent) { e.preventDefault(); return; }
    form.dataset.sent = "yes";
    say("Being sent");
    for (const b of form.querySelectorAll("button")) b.setAttribute("aria-disabled", "true");
  });
  window.addEventListener("pageshow", () => { for (const f of document.querySelectorAll("[data-sent]")) delete f.dataset.sent; });

  // Live: a message says that something happened; then the page is asked for
  // again, and its fragments are changed where they differ. A form in which
  // the reviewer writes is left alone.
  const feed = document.body.dataset.live;
  // What the server sent is compared, not what stands in the page: extensions of browsers, and
  // local times, change that.
  const served = new Map([...document.querySelectorAll("[data-fragment]")].map((f) => [f.id, f.innerHTML]));
  local(document);
  if (!feed || !window.EventSource) return;
  const write = document.querySelector("[data-write]");
  const busy = (el) => el.contains(document.activeElement) && !document.activeElement.matches("a, body") ||
    [...el.querySelectorAll("textarea, input:not([type=hidden])")].some((f) => /^(checkbox|radio)$/.test(f.type) ? f.checked || f.defaultChecked : f.value !== f.defaultValue);
  const bare = (el) => { // without its times, which grow older by themselves
    const copy = el.cloneNode(true);
    for (const t of copy.querySelectorAll("time")) { t.textContent = ""; t.removeAttribute("title"); }
    for (const a of copy.querySelectorAll("a[rel=next]")) a.removeAttribute("href"); // it is sealed anew each time
    return copy.innerHTML;
  };
  const before = (id) => { const el = document.createElement("div"); el.innerHTML = served.get(id); return bare(el); };
  let asked = 0, due = false, stale = false;
  const fresh = async () => {
    due = false;
    if (document.hidden) { stale = true; return; }
    const mine = ++asked;
    let text;
    try {
      const here = new URL(location.href);
      here.searchParams.delete("done");
      here.searchParams.delete("decided");
      here.hash = "";
      const answer = await fetch(here, { headers: { Accept: "text/html" }, credentials: "same-origin", redirect: "error" });
      if (!answer.ok) return;
      text = await answer.text();
    } catch { return; }
    if (mine !== asked) return;
    const page = new DOMParser().parseFromString(text, "text/html");
    let changed = 0, waiting = false;
    for (const old of document.querySelectorAll("[data-fragment]")) {
      const now = page.getElementById(old.id);
      if (!now || now.innerHTML === served.get(old.id)) continue;
      const same = before(old.id) === bare(now);
      if ("form" in old.dataset && busy(old)) { waiting = waiting || !same; continue; }
      const focus = old.contains(document.activeElement) ? document.activeElement.getAttribute("href") : null;
      const open = new Set([...old.querySelectorAll("details[open] > summary")].map((s) => s.textContent));
      const put = document.importNode(now, true);
      for (const s of put.querySelectorAll("details > summary")) if (open.has(s.textContent)) s.parentElement.open = true;
      served.set(old.id, now.innerHTML);
      local(put);
      old.replaceWith(put);
      if (focus) { const a = [...put.querySelectorAll("a")].find((x) => x.getAttribute("href") === focus); if (a) a.focus(); }
      if (same) continue;
      put.classList.add("fresh");
      changed++;
    }
    if (changed) { document.title = page.title; say("This page was brought up to date: " + page.title); }
    const note = document.querySelector("[data-stale]");
    if (waiting && note) { note.hidden = false; say(note.textContent); }
  };
  const soon = () => { if (!due) { due = true; setTimeout(fresh, 250); } };
  const source = new EventSource(feed);
  source.addEventListener("open", soon); // no event covers what happened between the page and this
  source.addEventListener("change", (e) => {
    let news = { more: true };
    try { news = JSON.parse(e.data); } catch { /* read anyway */ }
    if (write && !news.more && !(news.ids || []).includes(write.dataset.write)) return;
    soon();
  });
  document.addEventListener("visibilitychange", () => { if (!document.hidden && stale) { stale = false; soon(); } });
  window.addEventListener("pagehide", () => source.close());
  setInterval(() => { if (!document.hidden) soon(); }, 60000); // times grow old
})();

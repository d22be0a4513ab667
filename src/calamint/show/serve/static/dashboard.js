"use strict";
(() => {
  const place = document.body.dataset.stream;
  const said = document.getElementById("connection");
  const announce = (name) => htmx.trigger(document.body, name);
  const say = (text) => { if (said.textContent !== text) said.textContent = text; };
  let source = null;

  function connect() {
    source = new EventSource(place);
    source.addEventListener("changed", () => announce("changed"));
    source.addEventListener("drawn", () => announce("drawn"));
    source.addEventListener("open", () => {
      say("");
      document.documentElement.dataset.connected = "yes";
    });
    source.addEventListener("error", () => {
      document.documentElement.dataset.connected = "no";
      say("Connection lost: the page may be out of date");
      // A browser tries again by itself, but not after an answer that was an error.
      if (source.readyState === EventSource.CLOSED) setTimeout(() => { if (!document.hidden) connect(); }, 3000);
    });
  }

  // Browsers have few connections to a server for all of its pages: hidden ones need none.
  if (place) {
    document.addEventListener("visibilitychange", () => {
      if (source) source.close();
      source = null;
      if (!document.hidden) connect();
    });
    if (!document.hidden) connect();
  }
  if (document.body.dataset.poll) {
    setInterval(() => { if (!document.hidden) announce("changed"); }, Number(document.body.dataset.poll));
  }

  // What scrolls can be reached, and scrolled, with the keyboard.
  function reach() {
    document.querySelectorAll(".scroll").forEach((each) => {
      const scrolls = each.scrollWidth > each.clientWidth || each.scrollHeight > each.clientHeight;
      if (scrolls) each.tabIndex = 0;
      else each.removeAttribute("tabindex");
    });
  }
  addEventListener("resize", reach);
  document.body.addEventListener("toggle", reach, true);
  new MutationObserver(reach).observe(document.body, { childList: true, subtree: true });
  reach();

  // What a reader has opened stays open, and what was scrolled stays where it is.
  const kept = new Map();
  const scrolled = (root) => [...root.querySelectorAll(".scroll")];
  // News waits while a reader selects text, or presses a button or a mark.
  let missed = false;
  function isInUse(target) {
    const selection = getSelection();
    const selected = !selection.isCollapsed && selection.containsNode(target, true);
    return selected || target.querySelector(":active") !== null;
  }
  function catchUp() {
    if (!missed || !getSelection().isCollapsed) return;
    missed = false;
    announce("changed");
  }
  document.addEventListener("selectionchange", catchUp);
  document.addEventListener("pointerup", catchUp);
  document.body.addEventListener("htmx:beforeSwap", (event) => {
    const { target, requestConfig, xhr } = event.detail;
    const cause = requestConfig.triggeringEvent && requestConfig.triggeringEvent.type;
    if ((cause === "changed" || cause === "drawn") && isInUse(target)) {
      event.detail.shouldSwap = false;
      missed = true;
    }
    kept.set(target.id, {
      open: [...target.querySelectorAll("details[id]")].map((each) => [each.id, each.open]),
      scrolls: scrolled(target).map((each) => [each.scrollLeft, each.scrollTop]),
    });
    if (xhr.status >= 400) say("The server answers with an error: the page may be out of date");
    else if (said.textContent.startsWith("The server")) say("");
  });
  document.body.addEventListener("htmx:afterSwap", (event) => {
    const before = kept.get(event.target.id);
    if (!before) return;
    kept.delete(event.target.id);
    before.open.forEach(([id, wasOpen]) => {
      const found = document.getElementById(id);
      if (found) found.open = wasOpen;
    });
    if (window.drawPlots) drawPlots(event.target);
    const now = scrolled(event.target);
    if (now.length === before.scrolls.length) {
      now.forEach((each, index) => { [each.scrollLeft, each.scrollTop] = before.scrolls[index]; });
    }
  });
  document.body.addEventListener("input", (event) => {
    const output = event.target.parentElement.querySelector("output");
    if (event.target.type === "range" && output) output.textContent = "…";
  });

  // What was done is said once, and not again when the page is loaded again.
  const here = new URL(location.href);
  if (here.searchParams.has("done")) {
    ["done", "proof"].forEach((each) => here.searchParams.delete(each));
    history.replaceState(history.state, "", here);
  }
})();

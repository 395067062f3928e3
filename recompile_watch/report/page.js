"use strict";
(() => {
  const root = document.documentElement;
  const live = document.getElementById("live");

  const scheme = matchMedia("(prefers-color-scheme: dark)");
  const theme = document.getElementById("theme");
  const isDark = () => (root.dataset.theme ?? (scheme.matches ? "dark" : "light")) === "dark";
  const tellTheme = () => theme.setAttribute("aria-pressed", String(isDark()));
  theme.addEventListener("click", () => {
    root.dataset.theme = isDark() ? "light" : "dark";
    tellTheme();
  });
  scheme.addEventListener("change", tellTheme);
  tellTheme();

  const all = document.querySelectorAll("details");
  const open = document.getElementById("open");
  open.addEventListener("click", () => {
    const wanted = open.getAttribute("aria-pressed") !== "true";
    all.forEach((one) => { one.open = wanted; });
    open.setAttribute("aria-pressed", String(wanted));
  });
  theme.hidden = open.hidden = false;

  let closed = [];
  addEventListener("beforeprint", () => {
    closed = [...all].filter((one) => !one.open);
    closed.forEach((one) => { one.open = true; });
  });
  addEventListener("afterprint", () => closed.forEach((one) => { one.open = false; }));

  const copyText = async (from) => {
    try {
      await navigator.clipboard.writeText(from.textContent);
      return true;
    } catch {
      const range = document.createRange();
      range.selectNodeContents(from);
      getSelection().removeAllRanges();
      getSelection().addRange(range);
      return document.execCommand("copy");
    }
  };
  document.querySelectorAll("button.copy").forEach((button) => {
    button.hidden = false;
    button.addEventListener("click", async () => {
      const done = await copyText(document.getElementById(button.dataset.from));
      const word = done ? "Copied" : "Press Ctrl+C";
      button.firstElementChild.textContent = word;
      live.textContent = "";
      setTimeout(() => { live.textContent = done ? "Copied to the clipboard." : "Selected. Press Ctrl+C to copy."; }, 50);
      setTimeout(() => { button.firstElementChild.textContent = "Copy"; }, 2000);
    });
  });
})();

// Runs before the first paint, so that a dark page never flashes white. Light, dark, or what the system says.
(() => {
  const root = document.documentElement;
  const prefersDark = matchMedia("(prefers-color-scheme: dark)");
  const printed = matchMedia("print"); // paper is white: light letters could not be read on it
  const stored = () => (document.cookie.match(/(?:^|; )theme=(light|dark|system)/) || [])[1] || "system";

  const apply = (choice) => {
    root.dataset.theme = choice;
    const wished = choice === "system" ? (prefersDark.matches ? "dark" : "light") : choice;
    root.dataset.bsTheme = printed.matches ? "light" : wished;
    root.classList.toggle("dark-mode", root.dataset.bsTheme === "dark"); // what Swagger goes by
    for (const button of document.querySelectorAll("[data-theme-choice]")) {
      button.setAttribute("aria-pressed", String(button.dataset.themeChoice === choice));
    }
    root.dispatchEvent(new CustomEvent("themechange"));
  };

  apply(stored());
  for (const query of [prefersDark, printed]) query.addEventListener("change", () => apply(stored()));
  document.addEventListener("click", (event) => {
    const button = event.target.closest("[data-theme-choice]");
    if (!button) return;
    const secure = location.protocol === "https:" ? "; Secure" : "";
    document.cookie = `theme=${button.dataset.themeChoice}; Path=/; Max-Age=31536000; SameSite=Lax${secure}`;
    apply(button.dataset.themeChoice);
  });
})();

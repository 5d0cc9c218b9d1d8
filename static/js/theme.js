// Runs before the first paint, so that a dark page never flashes white. Light, dark, or what the
// system says.
(() => {
  const YEAR_SECONDS = 31_536_000;

  const root = document.documentElement;
  const prefersDark = matchMedia("(prefers-color-scheme: dark)");
  const isPrinted = matchMedia("print");

  const stored = () => {
    const found = document.cookie.match(/(?:^|; )theme=(light|dark|system)/);
    return found?.[1] ?? "system";
  };

  /** Paper is white: light letters could not be read on it. */
  const shownTheme = (choice) => {
    if (isPrinted.matches) return "light";
    if (choice !== "system") return choice;
    return prefersDark.matches ? "dark" : "light";
  };

  const apply = (choice) => {
    root.dataset.theme = choice;
    root.dataset.bsTheme = shownTheme(choice);
    root.classList.toggle("dark-mode", root.dataset.bsTheme === "dark"); // for Swagger
    for (const button of document.querySelectorAll("[data-theme-choice]")) {
      const isChosen = button.dataset.themeChoice === choice;
      button.setAttribute("aria-pressed", String(isChosen));
    }
    root.dispatchEvent(new CustomEvent("themechange"));
  };

  const keep = (choice) => {
    const secure = location.protocol === "https:" ? "; Secure" : "";
    const lasting = `Path=/; Max-Age=${YEAR_SECONDS}; SameSite=Lax${secure}`;
    document.cookie = `theme=${choice}; ${lasting}`;
  };

  apply(stored());
  for (const query of [prefersDark, isPrinted]) {
    query.addEventListener("change", () => apply(stored()));
  }
  document.addEventListener("click", (event) => {
    const button = event.target.closest("[data-theme-choice]");
    if (!button) return;
    keep(button.dataset.themeChoice);
    apply(button.dataset.themeChoice);
  });
})();

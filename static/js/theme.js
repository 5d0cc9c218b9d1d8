// Runs before the first paint, so that a dark page never flashes white. Light, dark, or what the system says.
(() => {
  const root = document.documentElement;
  const prefersDark = matchMedia("(prefers-color-scheme: dark)");
  const stored = () => (document.cookie.match(/(?:^|; )theme=(light|dark|system)/) || [])[1] || "system";

  const apply = (choice) => {
    root.dataset.theme = choice;
    root.dataset.bsTheme = choice === "system" ? (prefersDark.matches ? "dark" : "light") : choice;
    for (const button of document.querySelectorAll("[data-theme-choice]")) {
      button.setAttribute("aria-pressed", String(button.dataset.themeChoice === choice));
    }
    root.dispatchEvent(new CustomEvent("themechange"));
  };

  apply(stored());
  prefersDark.addEventListener("change", () => apply(stored()));
  document.addEventListener("click", (event) => {
    const button = event.target.closest("[data-theme-choice]");
    if (!button) return;
    const secure = location.protocol === "https:" ? "; Secure" : "";
    document.cookie = `theme=${button.dataset.themeChoice}; Path=/; Max-Age=31536000; SameSite=Lax${secure}`;
    apply(button.dataset.themeChoice);
  });
})();

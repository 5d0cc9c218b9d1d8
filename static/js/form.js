// The queue form: inputs that break a rule are marked where they are, as the server's findings come in.

export function watchForm(form) {
  if (!form) return;
  const findings = document.getElementById("findings");
  const mark = () => {
    const broken = new Map([...findings.querySelectorAll("[data-violates]")].map((item) => [item.dataset.violates, item.querySelector("p").textContent]));
    for (const input of form.querySelectorAll("[data-field]")) {
      const words = broken.get(input.dataset.field);
      input.classList.toggle("is-invalid", words !== undefined);
      input.setAttribute("aria-invalid", String(words !== undefined));
      input.title = words || "";
    }
  };
  document.addEventListener("htmx:afterSwap", (event) => event.target === findings && mark());
  mark();
}

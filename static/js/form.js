// The queue form: inputs that break a rule are marked where they are, as the server's findings come in; one click takes its advice.

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
  findings.addEventListener("click", (event) => {
    const button = event.target.closest('button[name="mend"]');
    const at = button?.value.lastIndexOf("=");
    const input = button && form.querySelector(`[data-field="${CSS.escape(button.value.slice(0, at))}"]`);
    if (!input) return;
    event.preventDefault(); // the server would do it too, with the whole page
    input.value = button.value.slice(at + 1);
    input.focus();
    input.dispatchEvent(new Event("input", { bubbles: true }));
  });
  document.addEventListener("htmx:afterSwap", (event) => event.target === findings && mark());
  mark();
}

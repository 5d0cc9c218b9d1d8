// Buttons with data-copy="#id" put that element's text on the clipboard and say so.
for (const button of document.querySelectorAll("button[data-copy]")) {
  button.addEventListener("click", async () => {
    const words = button.textContent;
    await navigator.clipboard.writeText(document.querySelector(button.dataset.copy).textContent);
    button.textContent = "Copied";
    setTimeout(() => { button.textContent = words; }, 1500);
  });
}

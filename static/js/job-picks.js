// Ticked rows in the list of jobs: how many, the whole page, or all that match the search.

export function watchJobPicks() {
  const form = document.getElementById("job-actions");
  const wholePage = form?.querySelector("[data-pick-all]");
  if (!wholePage) return; // who may command none of these jobs is offered nothing
  const boxes = () => [...form.querySelectorAll('input[type="checkbox"][name="job"]:enabled')];
  const show = () => showPicks(form, wholePage, boxes());
  form.addEventListener("change", (event) => {
    if (event.target === wholePage) tickAll(boxes(), wholePage.checked);
    show();
  });
  document.addEventListener("content", show);
  form.addEventListener("formdata", ({ formData }) => sendAsOne(formData));
  show();
}

/** However many rows are ticked, they are one field: a server takes only so many. */
function sendAsOne(formData) {
  const keys = formData.getAll("job");
  formData.delete("job");
  formData.set("jobs", keys.join(" "));
}

function tickAll(boxes, isTicked) {
  for (const box of boxes) box.checked = isTicked;
}

function showPicks(form, wholePage, boxes) {
  const here = boxes.filter((box) => box.checked).length;
  const elsewhere = form.querySelectorAll('input[type="hidden"][name="job"]').length;
  const picked = here + elsewhere; // rows far from the window are not in the page
  const isMatching = Boolean(form.querySelector("[data-pick-matching]")?.checked);
  form.querySelector("[data-picked]").textContent = pickedWords(picked, isMatching);
  form.querySelector("[data-when-picked]").hidden = !picked && !isMatching;
  wholePage.checked = here > 0 && here === boxes.length;
}

function pickedWords(picked, isMatching) {
  if (isMatching) return "all that match";
  return picked ? `${picked} chosen` : "";
}

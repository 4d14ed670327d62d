"use strict";
// Two comforts; the page is whole without them. A link to a lane that is switched off brings all
// lanes back, and a replay command can be copied.
function reveal() {
  const target = document.getElementById(decodeURIComponent(location.hash.slice(1)));
  if (!target) return;
  for (let details = target.closest("details"); details; details = details.parentElement.closest("details")) details.open = true;
  const lane = target.closest(".lane");
  if (lane && getComputedStyle(lane).display === "none") {
    target.closest(".gantt-figure").querySelector('.views input[value="all"]').checked = true;
  }
  const fits = target.getBoundingClientRect().height < innerHeight;
  target.scrollIntoView({ block: fits ? "center" : "start" });
}
addEventListener("hashchange", reveal);
if (location.hash) reveal();
for (const button of document.querySelectorAll("button.copy")) {
  const command = button.parentElement.querySelector("code");
  button.hidden = false;
  button.addEventListener("click", async () => {
    try {
      await navigator.clipboard.writeText(command.textContent);
      button.textContent = "Copied";
    } catch {
      getSelection().selectAllChildren(command); // no clipboard here: selected, ready for Ctrl+C
      button.textContent = "Selected";
    }
  });
}

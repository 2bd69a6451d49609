// Sets the heights of the frames whose address is a page of this script's server.
addEventListener("message", event => {
  const { forms, height } = event.data || {};
  if (!forms) return;
  for (const frame of document.querySelectorAll("iframe")) {
    if (frame.contentWindow !== event.source) continue;
    if (forms === "height" && height > 0) frame.style.height = Math.ceil(height) + "px";
    frame.dispatchEvent(new CustomEvent("forms:" + forms, { bubbles: true }));
  }
});
// A frame that was ready before this script has reported its height to nobody.
for (const frame of document.querySelectorAll("iframe")) {
  if (frame.src.startsWith(new URL("/", document.currentScript.src))) frame.contentWindow.postMessage({ forms: "ask" }, "*");
}

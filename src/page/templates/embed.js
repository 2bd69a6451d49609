// Sets the heights of the frames whose address is a page of this script's server, and tells the site when answers were sent.
(() => {
  const { origin } = new URL(document.currentScript.src);
  addEventListener("message", ({ data, origin: sender, source }) => {
    const { forms, height } = data || {};
    if (!forms || sender !== origin) return;
    for (const frame of document.querySelectorAll("iframe")) {
      if (frame.contentWindow !== source) continue;
      if (forms === "height" && height > 0) frame.style.height = Math.ceil(height) + "px";
      frame.dispatchEvent(new CustomEvent("forms:" + forms, { bubbles: true }));
    }
  });
  // A frame that was ready before this script has reported its height to nobody.
  for (const frame of document.querySelectorAll("iframe")) {
    if (frame.src.startsWith(origin + "/")) frame.contentWindow.postMessage({ forms: "ask" }, "*");
  }
})();

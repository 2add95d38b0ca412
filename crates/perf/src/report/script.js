"use strict";
// The page can be read without this: it shows at once, and beside a line through the chart, what
// browsers show of a title after a while; and it unfolds a load that an address leads to.
(() => {
  const tip = document.createElement("div");
  tip.className = "tip";
  tip.hidden = true;
  document.body.append(tip);
  const texts = new WeakMap();
  let cross = null;

  const leave = () => {
    tip.hidden = true;
    if (cross) cross.remove();
    cross = null;
  };

  const show = (event) => {
    const place = event.target.closest ? event.target.closest(".place") : null;
    if (!place) return leave();
    const svg = place.ownerSVGElement;
    if (!cross || cross.ownerSVGElement !== svg) {
      leave();
      cross = document.createElementNS(svg.namespaceURI, "path");
      cross.setAttribute("class", "cross");
      svg.insertBefore(cross, svg.querySelector(".place"));
    }
    cross.setAttribute("d", "M" + place.dataset.at + " 0V" + svg.viewBox.baseVal.height);
    tip.textContent = texts.get(place);
    tip.hidden = false;
    const room = document.documentElement.clientWidth - tip.offsetWidth - 8;
    const beside = event.clientX + 16;
    const left = beside > room ? event.clientX - tip.offsetWidth - 16 : beside;
    tip.style.left = Math.max(8, Math.min(left, room)) + "px";
    tip.style.top = Math.max(8, event.clientY - tip.offsetHeight - 12) + "px";
  };

  document.querySelectorAll(".place").forEach((place) => {
    const title = place.querySelector("title");
    texts.set(place, title.textContent);
    title.remove();
  });
  document.addEventListener("pointermove", show);
  document.addEventListener("pointerdown", show);
  document.addEventListener("scroll", leave, true);

  const unfold = () => {
    const target = document.getElementById(location.hash.slice(1));
    const details = target ? target.closest("details") : null;
    if (details) {
      details.open = true;
      details.scrollIntoView();
    }
  };
  window.addEventListener("hashchange", unfold);
  unfold();
  window.addEventListener("beforeprint", () => {
    document.querySelectorAll("details").forEach((details) => { details.open = true; });
  });
})();

// The admin gives the signs beside its search boxes a name, which only something with a role may have.
"use strict";

window.addEventListener("load", () => setTimeout(() => {
  for (const sign of document.querySelectorAll(".search-label-icon")) sign.setAttribute("role", "img");
}));

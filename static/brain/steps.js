"use strict";
// The next part of an import begins by itself; without scripts there is the button.
const next = document.getElementById("next-step");
if (next) {
  setTimeout(() => next.requestSubmit(), 300);
}

"use strict";
// Offers, in the text filters of a list, values that exist; without scripts they are plain fields.
const PAUSE = 150; // milliseconds after a key

function offer(field) {
  let pause, asked;
  const ask = async () => {
    asked?.abort();
    asked = new AbortController();
    const address = new URL(field.dataset.suggest, location.href);
    address.searchParams.set("beginn", field.value);
    try {
      const answer = await fetch(address, { signal: asked.signal });
      if (!answer.ok || answer.redirected) return; // signed out meanwhile
      const { values } = await answer.json();
      field.list.replaceChildren(...values.map((value) => new Option("", value)));
    } catch {
      // The next key asks again.
    }
  };
  field.addEventListener("focus", ask);
  field.addEventListener("input", () => {
    clearTimeout(pause);
    pause = setTimeout(ask, PAUSE);
  });
}

document.querySelectorAll("input[data-suggest]").forEach(offer);

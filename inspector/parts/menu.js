// What else can be done: a list that closes when something of it is chosen, or one looks elsewhere.

import { useEffect, useRef } from "preact/hooks";
import { html, names } from "../lib/html.js";
import { Icon } from "./icons.js";

/** @param {{ label: string, small?: boolean, children?: import("preact").ComponentChildren }} props */
export function Menu({ label, small = false, children }) {
  const menu = useRef(/** @type {HTMLDetailsElement | null} */ (null));
  const close = () => {
    if (menu.current) menu.current.open = false;
  };
  useEffect(() => {
    const elsewhere = (/** @type {Event} */ event) => {
      if (event.target instanceof Node && !menu.current?.contains(event.target)) close();
    };
    // Wherever the focus is: a button that waits has none.
    const pressed = (/** @type {KeyboardEvent} */ event) => {
      if (event.key !== "Escape" || !menu.current?.open) return;
      event.stopPropagation();
      close();
      menu.current.querySelector("summary")?.focus();
    };
    addEventListener("pointerdown", elsewhere);
    addEventListener("keydown", pressed, { capture: true });
    return () => {
      removeEventListener("pointerdown", elsewhere);
      removeEventListener("keydown", pressed, { capture: true });
    };
  }, []);
  // What copies says so for a moment, and stays.
  const chosen = (/** @type {Event} */ event) => {
    if (event.target instanceof Element && event.target.closest("button") && !event.target.closest("[data-stays]")) close();
  };
  return html`<details class="menu" ref=${menu}>
    <summary class=${names("button quiet bare", small && "small")} aria-label=${label}><${Icon} name="more" /></summary>
    <div onClick=${chosen}>${children}</div>
  </details>`;
}

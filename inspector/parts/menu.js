// A menu of further actions. It closes after a choice, or after a click elsewhere.

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
    // Listens on the window, because a disabled button has no focus.
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
  // A copy button shows its success for a moment, so the menu stays open.
  const chosen = (/** @type {Event} */ event) => {
    if (event.target instanceof Element && event.target.closest("button") && !event.target.closest("[data-stays]")) close();
  };
  return html`<details class="menu" ref=${menu}>
    <summary class=${names("button quiet bare", small && "small")} aria-label=${label}><${Icon} name="more" /></summary>
    <div onClick=${chosen}>${children}</div>
  </details>`;
}

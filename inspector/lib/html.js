// Markup in template literals, as Preact nodes.

import htm from "htm";
import { h } from "preact";

export const html = htm.bind(h);

/** Joins class names, skipping false ones. @param {...(string | false | null | undefined)} names */
export const names = (...names) => names.filter(Boolean).join(" ");

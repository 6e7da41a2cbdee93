// Markup in templates, as nodes of Preact.

import htm from "htm";
import { h } from "preact";

export const html = htm.bind(h);

/** Names of classes, those that are not false. @param {...(string | false | null | undefined)} names */
export const names = (...names) => names.filter(Boolean).join(" ");

// Icons drawn with lines of the same weight.

import { html } from "../lib/html.js";

/** @type {Record<string, string>} */
const PATHS = {
  threads: "M4 6h16M4 12h16M4 18h10",
  waiting: "M12 7v5l3 2M12 21a9 9 0 1 1 0-18 9 9 0 0 1 0 18Z",
  app: "M12 3l8 4.5v9L12 21l-8-4.5v-9L12 3Zm0 9 8-4.5M12 12v9M12 12 4 7.5",
  send: "M5 12h13M12 5l7 7-7 7",
  stop: "M7 7h10v10H7z",
  play: "M8 5.5v13l10-6.5z",
  plus: "M12 5v14M5 12h14",
  clip: "M20 11.5 12 19.5a5 5 0 0 1-7-7l8.5-8.5a3.4 3.4 0 0 1 5 5L10 17.3a1.7 1.7 0 0 1-2.500-2.500L15 7.300",
  terminal: "M4 5h16v14H4zM7.500 9.500l3 2.500-3 2.500M12.500 15h4",
  copy: "M9 9h10v11H9zM5 15V4h10",
  back: "M15 5l-7 7 7 7",
  next: "M9 5l7 7-7 7",
  close: "M6 6l12 12M18 6 6 18",
  more: "M5 12h.01M12 12h.01M19 12h.01",
  check: "M5 12.500l4.500 4.500L19 7.500",
  cross: "M7 7l10 10M17 7 7 17",
  warn: "M12 8v5M12 16.500h.01M12 3.500 2.500 20h19L12 3.500Z",
  search: "M11 18a7 7 0 1 1 0-14 7 7 0 0 1 0 14ZM16 16l4.500 4.500",
  branch: "M7 4v16M7 12c6 0 10-1 10-6M17 3v3",
  tool: "M14.500 6.500a4 4 0 0 0-5.300 5.100L4 16.800 7.200 20l5.200-5.200a4 4 0 0 0 5.100-5.300l-2.700 2.700-2.900-.800-.800-2.900 2.400-2Z",
  down: "M12 5v14M6 13l6 6 6-6",
  file: "M6 3h8l4 4v14H6zM14 3v4h4",
  folder: "M3 6h6l2 2h10v11H3z",
  again: "M4 12a8 8 0 0 1 14-5l2 2M20 4v5h-5M20 12a8 8 0 0 1-14 5l-2-2M4 20v-5h5",
};

/** @param {{ name: string }} props */
export const Icon = ({ name }) => html`<svg class="icon" viewBox="0 0 24 24" aria-hidden="true"><path d=${PATHS[name] ?? ""} /></svg>`;

/** The logo. */
export const Mark = () => html`
  <svg class="mark" viewBox="0 0 32 32" aria-hidden="true">
    <path class="spool" d="M6 4h20v5H6zm0 19h20v5H6z" />
    <path class="yarn" d="M9 10h14v2.6H9zm0 4.700h14v2.600H9zm0 4.700h14V22H9z" />
  </svg>
`;

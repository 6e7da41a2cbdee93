// Addresses: each view has one, after `#`.
//
//   #/                       threads                 #/t/<thread>              its conversation
//   #/t/<thread>/m_…         a step beside it        #/t/<thread>/timeline     and data, health
//   #/waiting                open waits              #/app, #/app/<agent>      the application

import { useEffect, useState } from "preact/hooks";

/**
 * @typedef {object} Place
 * @property {"threads" | "thread" | "waiting" | "app"} screen
 * @property {string} [thread]
 * @property {"conversation" | "timeline" | "data" | "health"} [tab]
 * @property {string} [message]    the selected step
 * @property {string} [agent]
 */

const TABS = new Set(["timeline", "data", "health"]);

/** @param {string} hash @returns {Place} */
export function placeOf(hash) {
  const [first, second, third] = hash.replace(/^#?\/?/, "").split("/").map(decoded);
  if (first === "waiting") return { screen: "waiting" };
  if (first === "app") return { screen: "app", ...(second && { agent: second }) };
  if (first !== "t" || !second) return { screen: "threads" };
  if (third && TABS.has(third)) return { screen: "thread", thread: second, tab: /** @type {any} */ (third) };
  return { screen: "thread", thread: second, tab: "conversation", ...(third && { message: third }) };
}

/** @param {Partial<Place>} place */
export function hrefOf({ screen, thread, tab, message, agent }) {
  const below = (/** @type {(string | undefined)[]} */ ...parts) => `#/${parts.filter(Boolean).map((part) => encodeURIComponent(part ?? "")).join("/")}`;
  if (screen === "waiting" || screen === "app") return below(screen, agent);
  if (thread === undefined) return "#/";
  return below("t", thread, message ?? (tab === "conversation" ? undefined : tab));
}

/** @param {Partial<Place>} place */
export const go = (place) => void (location.hash = hrefOf(place));

/** Decodes a part; a percent sign alone is not an escape. @param {string} part */
function decoded(part) {
  try {
    return decodeURIComponent(part);
  } catch {
    return part;
  }
}

/** The current place of the page. */
export function usePlace() {
  const [place, setPlace] = useState(() => placeOf(location.hash));
  useEffect(() => {
    const moved = () => setPlace(placeOf(location.hash));
    addEventListener("hashchange", moved);
    return () => removeEventListener("hashchange", moved);
  }, []);
  return place;
}

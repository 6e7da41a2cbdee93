// The conversation: a window of rows over all messages, so that a thread of thousands is as light as one of ten. It follows
// new output until the user scrolls away.

import { useEffect, useLayoutEffect, useMemo, useRef, useState } from "preact/hooks";
import { useKeys } from "../lib/hooks.js";
import { html, names } from "../lib/html.js";
import { go } from "../lib/route.js";
import { rowsOf } from "../lib/rows.js";
import { Button, Busy, Empty } from "../parts/ui.js";
import { Message } from "./message.js";
import { Markdown } from "../lib/markdown.js";

/** The number of rendered rows, and by how many the window moves. */
export const ROWS = 60;
const STEP = 25;
/** The window moves when an edge is this close, in pixels. */
const NEAR = 900;
/** Within this distance, in pixels, the view counts as at the end. */
const END = 60;

/** @param {{ id: string, followed: import("../lib/follow.js").Followed, two: boolean, selected: string | undefined }} props */
export function Conversation({ id, followed, two, selected }) {
  const { view, messages, hasMore, loadOlder, again } = followed;
  const rows = useMemo(() => rowsOf(messages), [messages]);
  const { box, first, shown, atEnd, move, toEnd, onScroll, onGrown } = useWindow(rows, view, selected, { hasMore, loadOlder, two });
  useRowKeys(id, box, move);
  if (view.state === null) return html`<div class="messages"><${Busy} /></div>`;
  const partial = first + shown.length >= rows.length ? view.partial : null;
  return html`<div class="around">
    <div class=${names("messages", two && "two")} ref=${box} onScroll=${onScroll} onLoadCapture=${onGrown} tabindex="0" role="log" aria-label="Messages" aria-live="off" data-first=${first} data-rows=${rows.length}>
      ${first === 0 && !hasMore && rows.length > 0 && html`<p class="edge">The beginning</p>`}
      ${(first > 0 || hasMore) && html`<p class="edge">Scroll for what was said before</p>`}
      ${shown.map((row) => html`<${Message} key=${row.id} id=${id} row=${row} two=${two} selected=${row.id === selected} onChanged=${again} />`)}
      ${partial &&
      html`<article class="message" data-role="assistant" data-writing aria-label="Reply being written">
        <header><strong>Assistant</strong><span class="quiet">writing</span></header>
        <${Markdown} text=${partial.text} />
      </article>`}
      ${rows.length === 0 && !partial && html`<${Empty} title="No messages yet"><p>Write the first message below. What the agent does then is shown as it happens.</p><//>`}
    </div>
    ${!atEnd && html`<div class="newest"><${Button} label="To the newest" icon="down" onClick=${toEnd} /></div>`}
  </div>`;
}

/**
 * Decides which rows are shown. The window moves when the user scrolls to its edge, and the visible rows keep their position.
 *
 * @param {import("../lib/rows.js").Row[]} rows
 * @param {import("../lib/follow.js").View} view
 * @param {string | undefined} selected
 * @param {{ hasMore: boolean, loadOlder: () => Promise<void>, two: boolean }} older
 */
function useWindow(rows, view, selected, { hasMore, loadOlder, two }) {
  const box = useRef(/** @type {HTMLElement | null} */ (null));
  /** The first row of the window; undefined while it follows the end. */
  const [from, setFrom] = useState(/** @type {string | undefined} */ (undefined));
  const [atEnd, setAtEnd] = useState(true);
  const held = useRef(/** @type {{ id: string, top: number } | undefined} */ (undefined));
  const found = from === undefined ? -1 : rows.findIndex(({ id }) => id === from);
  const first = found < 0 ? Math.max(0, rows.length - ROWS) : found;
  const shown = rows.slice(first, first + ROWS);

  const hold = () => {
    const top = box.current?.getBoundingClientRect().top ?? 0;
    for (const child of box.current?.querySelectorAll("[data-id]") ?? []) {
      const at = child.getBoundingClientRect();
      if (at.bottom > top) return void (held.current = { id: child.getAttribute("data-id") ?? "", top: at.top });
    }
  };
  const show = (/** @type {number} */ index) => {
    hold();
    setFrom(index >= rows.length - ROWS ? undefined : rows[Math.max(0, index)]?.id);
  };
  const scrolled = () => {
    const { current } = box;
    if (!current) return;
    const room = current.scrollHeight - current.clientHeight;
    const below = room - current.scrollTop;
    // On a tall screen the edges are closer together.
    const near = Math.min(NEAR, room / 3);
    const end = below < END && first + ROWS >= rows.length;
    setAtEnd(end);
    if (current.scrollTop <= near && first > 0) show(first - STEP);
    else if (current.scrollTop <= near && hasMore) void (hold(), setFrom(rows[first]?.id), loadOlder());
    else if (below <= near && first + ROWS < rows.length) show(first + STEP);
  };
  // Use the state of the latest render, not that of the render that added the listener: an event may come between the two.
  const newest = useRef(scrolled);
  newest.current = scrolled;
  // New content may have moved an edge to the current position, from which the user cannot scroll further.
  useEffect(() => {
    const frame = requestAnimationFrame(() => newest.current());
    return () => cancelAnimationFrame(frame);
  }, [first, rows]);
  useLayoutEffect(() => {
    const { current } = box;
    if (!current) return;
    const anchor = held.current && current.querySelector(`[data-id="${CSS.escape(held.current.id)}"]`);
    if (anchor && held.current) current.scrollTop += anchor.getBoundingClientRect().top - held.current.top;
    else if (atEnd) current.scrollTop = current.scrollHeight;
    held.current = undefined;
  }, [first, shown.length, shown.at(-1)?.id, rows, view.partial, two]);
  useSelected(box, rows, selected, { hasMore, loadOlder, show: (index) => setFrom(rows[Math.max(0, index - 5)]?.id), leave: () => setAtEnd(false) });
  // An image has loaded and has its size now.
  const onGrown = () => {
    if (atEnd && box.current) box.current.scrollTop = box.current.scrollHeight;
  };
  const toEnd = () => {
    setFrom(undefined);
    setAtEnd(true);
    requestAnimationFrame(() => box.current?.scrollTo({ top: box.current.scrollHeight }));
  };
  return { box, first, shown, atEnd, toEnd, move: hold, onScroll: () => newest.current(), onGrown };
}

/**
 * Scrolls the message of the address into view, once. Pages are loaded until it is found.
 *
 * @param {{ current: HTMLElement | null }} box
 * @param {import("../lib/rows.js").Row[]} rows
 * @param {string | undefined} selected
 * @param {{ hasMore: boolean, loadOlder: () => Promise<void>, show: (index: number) => void, leave: () => void }} how
 */
function useSelected(box, rows, selected, { hasMore, loadOlder, show, leave }) {
  const done = useRef(/** @type {string | undefined} */ (undefined));
  useEffect(() => {
    if (selected === undefined || done.current === selected || rows.length === 0) return;
    const node = box.current?.querySelector(`[data-id="${CSS.escape(selected)}"]`);
    if (node) {
      done.current = selected;
      const [at, around] = [node.getBoundingClientRect(), box.current?.getBoundingClientRect()];
      if (around && (at.bottom < around.top + 40 || at.top > around.bottom - 40)) {
        leave();
        node.scrollIntoView({ block: "center" });
      }
      return;
    }
    const index = rows.findIndex(({ id }) => id === selected);
    if (index >= 0) void (leave(), show(index));
    else if (hasMore) void loadOlder();
  });
}

/** `j` and `k` move between messages, Enter opens the step of one. @param {string} id @param {{ current: HTMLElement | null }} box @param {() => void} hold */
function useRowKeys(id, box, hold) {
  const step = (/** @type {number} */ by) => {
    const all = /** @type {HTMLElement[]} */ ([...(box.current?.querySelectorAll("[data-id]") ?? [])]);
    const at = all.findIndex((node) => node === document.activeElement || node.contains(document.activeElement));
    const next = at < 0 ? all.at(-1) : all[Math.max(0, Math.min(all.length - 1, at + by))];
    hold();
    next?.focus();
    next?.scrollIntoView({ block: "nearest" });
  };
  useKeys({
    j: () => step(1),
    k: () => step(-1),
    Enter: (event) => {
      const node = /** @type {HTMLElement | null} */ (event.target instanceof Element ? event.target.closest("[data-id]") : null);
      if (node && node === event.target && node.dataset.reply !== undefined) go({ screen: "thread", thread: id, message: node.dataset.id ?? "" });
      else if (event.target instanceof HTMLElement) event.target.click();
    },
  });
}

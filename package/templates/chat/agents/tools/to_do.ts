import type { ToolHandler } from "bobbin";

interface Entry {
  text: string;
  done: boolean;
}

const KEY = "to_do";
const MOST = 200;

const toDo: ToolHandler<{ add?: string[]; done?: number[] }> = async (state, { add = [], done = [] }) => {
  const list = (await state.getValue<Entry[]>(KEY)) ?? [];
  const wrong = done.find((number) => number > list.length);
  if (wrong !== undefined) throw new RangeError(`There is no entry ${wrong}; the list has ${list.length}.`);
  if (list.length + add.length > MOST) throw new RangeError(`A list of more than ${MOST} entries helps nobody.`);
  const changed = [
    ...list.map((entry, at) => ({ ...entry, done: entry.done || done.includes(at + 1) })),
    ...add.map((text) => ({ text, done: false })),
  ];
  await state.setValue(KEY, changed);
  if (changed.length === 0) return "The list is empty.";
  return changed.map(({ text, done }, at) => `${at + 1}. [${done ? "x" : " "}] ${text}`).join("\n");
};

export default toDo;

import type { ToolHandler } from "bobbin";
import { type Entry, KEY, written } from "../lib/to_do";

/** Numbers are those of the list that the model saw. */
interface Changes {
  add?: string[];
  done?: number[];
  remove?: number[];
}

const MOST = 200;

const toDo: ToolHandler<Changes> = async (state, { add = [], done = [], remove = [] }) => {
  const list = (await state.getValue<Entry[]>(KEY)) ?? [];
  const wrong = [...done, ...remove].find((number) => number > list.length);
  if (wrong !== undefined) throw new RangeError(`There is no entry ${wrong}; the list has ${list.length}.`);
  if (list.length + add.length > MOST) throw new RangeError(`A list of more than ${MOST} entries helps nobody.`);

  const changed = [
    ...list
      .map((entry, at) => ({ ...entry, done: entry.done || done.includes(at + 1) }))
      .filter((_, at) => !remove.includes(at + 1)),
    ...add.map((text) => ({ text, done: false })),
  ];
  await state.setValue(KEY, changed);
  state.emit("to_do", changed);
  return written(changed);
};

export default toDo;

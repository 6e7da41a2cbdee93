/** Where a thread keeps its list. */
export const KEY = "to_do";

export interface Entry {
  text: string;
  done: boolean;
}

export function written(list: Entry[]): string {
  if (list.length === 0) return "The list is empty.";
  return list.map(({ text, done }, at) => `${at + 1}. [${done ? "x" : " "}] ${text}`).join("\n");
}

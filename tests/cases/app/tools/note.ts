import type { ToolHandler } from "bobbin";

/** Safe: a second run leaves what the first one left. */
const note: ToolHandler<{ text: string }> = async (state, { text }) => {
  await state.setValue("note", text);
  await state.setValue("length", text.length);
  await state.writeFile("/note.txt", text, "text/plain");
  return "Noted.";
};
export default note;

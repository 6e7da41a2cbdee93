import type { ToolHandler } from "bobbin";
import { type Figure, KEY } from "../lib/figures";

const readFigures: ToolHandler<{ name?: string }> = async (state, { name }) => {
  const all = (await state.getValue<Figure[]>(KEY)) ?? [];
  const figures = name === undefined ? all : all.filter((figure) => figure.name === name);
  if (figures.length === 0) return "No figures were recorded.";
  return figures.slice(-100).map(({ at, name, value }) => `${at} ${name}: ${value}`).join("\n");
};

export default readFigures;

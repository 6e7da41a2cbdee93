import type { ToolHandler } from "bobbin";

/** A sample: no money moves. */
const pay: ToolHandler<{ amount: number; to: string }> = async (_state, { amount, to }) => `Paid ${amount} EUR to ${to}.`;

export default pay;

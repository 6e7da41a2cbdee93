import type { ToolHandler } from "bobbin";
import { ORDERS } from "../lib/orders";

interface Refund {
  order: string;
  amount: number;
  reason: string;
}

/**
 * No money moves here: what was paid back is noted in the thread. It is noted under the order, so that a call that comes a second
 * time, after a crash, pays nothing twice; give your payment provider the same as its idempotency key.
 */
const refund: ToolHandler<Refund> = async (state, { order, amount, reason }) => {
  const known = ORDERS[order.toUpperCase()];
  if (known === undefined) throw new RangeError(`There is no order ${order}.`);
  if (known.state === "refunded") throw new RangeError(`${order} was paid back already.`);
  if (amount > known.amount) throw new RangeError(`${order} cost ${known.amount} EUR.`);
  const key = `refund:${order.toUpperCase()}`;
  if (!(await state.setValue(key, { amount, reason }, { ifValue: null }))) return `${order} was paid back already in this conversation.`;
  return `${amount} EUR are paid back for ${order}.`;
};

export default refund;

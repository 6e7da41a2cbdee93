import type { ToolHandler } from "bobbin";
import { ORDERS } from "../lib/orders";

interface Refund {
  order: string;
  amount: number;
  reason: string;
}

/**
 * No money moves here: the refund is recorded in the thread. The order is the key, so that a call that is repeated
 * after a crash refunds nothing twice. Give your payment provider the same key as its idempotency key.
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

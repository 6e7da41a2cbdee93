import type { ToolHandler } from "bobbin";
import { ORDERS } from "../lib/orders";

/** Replace this by a request to your shop: `fetch`, with the host in `allowedHosts` of the definition's `run.code`. */
const lookUpOrder: ToolHandler<{ order: string }> = async (_state, { order }) =>
  ORDERS[order.toUpperCase()] ?? `There is no order ${order}.`;

export default lookUpOrder;

/** An order of the shop. */
export interface Order {
  items: string[];
  /** EUR. */
  amount: number;
  state: "paid" | "sent" | "delivered" | "refunded";
  sent?: string;
  delivered?: string;
}

/** A few orders to try the desk with. */
export const ORDERS: Record<string, Order> = {
  A1: { items: ["12 bobbins"], amount: 14.4, state: "sent", sent: "2026-11-20" },
  A2: { items: ["silk thread, 40 colours"], amount: 89, state: "delivered", sent: "2026-11-12", delivered: "2026-11-14" },
  A3: { items: ["needles"], amount: 6.5, state: "refunded" },
};

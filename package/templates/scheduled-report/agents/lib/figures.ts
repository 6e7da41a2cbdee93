/** A figure, as it was recorded. */
export interface Figure {
  name: string;
  value: number;
  /** ISO 8601. */
  at: string;
}

/** Where the thread has them. */
export const KEY = "figures";

/** So many are kept; older ones go. */
export const MOST = 5_000;

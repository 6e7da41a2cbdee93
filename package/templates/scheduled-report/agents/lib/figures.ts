/** A recorded figure. */
export interface Figure {
  name: string;
  value: number;
  /** ISO 8601. */
  at: string;
}

/** The key of the thread's figures. */
export const KEY = "figures";

/** The number of figures to keep. Older ones are dropped. */
export const MOST = 5_000;

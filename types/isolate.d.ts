// What `bobbin/isolate` exports: the Worker in which code runs, and its entry.

/** The entry that the Worker is bound to. */
export const Isolate: new (ctx: unknown, env: unknown) => object;

declare const isolate: {
  fetch(request: unknown): Promise<any>;
};
export default isolate;

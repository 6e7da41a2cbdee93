// Exports of `bobbin/isolate`: the Worker in which code runs, and its entry point.

/** The entry point that the main Worker binds. */
export const Isolate: new (ctx: unknown, env: unknown) => object;

declare const isolate: {
  fetch(request: unknown): Promise<any>;
};
export default isolate;

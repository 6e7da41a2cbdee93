// What the build puts beside the Worker, or into it.

declare module "*.wasm" {
  const module: WebAssembly.Module;
  export default module;
}

/** The harness as a script, whose value is its function `start`. */
declare module "sandbox-harness" {
  const script: string;
  export default script;
}

/** The main module of a Worker of the engine `v8`: isolate/harness/worker.js, bundled. */
declare module "sandbox-worker" {
  const source: string;
  export default source;
}

/** Beside it: what its generated modules take their exports from. */
declare module "sandbox-values" {
  export function fill(values: object): void;
}

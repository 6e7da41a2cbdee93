// Modules that the build adds to the Worker.

declare module "*.wasm" {
  const module: WebAssembly.Module;
  export default module;
}

/** The harness as a script. Its value is the function `start`. */
declare module "sandbox-harness" {
  const script: string;
  export default script;
}

/** The main module of a Worker of the engine `v8`: isolate/harness/worker.js, bundled. */
declare module "sandbox-worker" {
  const source: string;
  export default source;
}

/** The module in that Worker from which the generated modules take their exports. */
declare module "sandbox-values" {
  export function fill(values: object): void;
}

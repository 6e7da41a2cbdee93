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

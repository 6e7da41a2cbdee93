// The isolate Worker: code of tools, and of models, runs in it.
export { default, Isolate } from "bobbin/isolate";

// The isolate Worker. It runs the code of tools and of models.
export { default, Isolate } from "bobbin/isolate";

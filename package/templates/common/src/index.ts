// The Worker. To add your own routes, export a `fetch` that handles them and calls `bobbin.fetch(request, env, ctx)`
// for all others.
export { default, DirectoryObject, MemoryObject, ThreadObject } from "bobbin/worker";

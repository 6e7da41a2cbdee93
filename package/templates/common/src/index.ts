// The Worker. Routes of your own may come before Bobbin's: export a `fetch` that answers them, and that calls
// `bobbin.fetch(request, env, ctx)` for all others.
export { default, DirectoryObject, MemoryObject, ThreadObject } from "bobbin/worker";

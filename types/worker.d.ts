// Exports of `bobbin/worker`: the Worker, and the classes of its Durable Objects.

/** A Durable Object class. The platform constructs its objects. */
interface ObjectClass {
  new (ctx: unknown, env: unknown): object;
}

/** A thread. */
export const ThreadObject: ObjectClass;
/** The list of an owner's threads. */
export const DirectoryObject: ObjectClass;
/** A memory that threads share. */
export const MemoryObject: ObjectClass;

declare const worker: {
  /** Handles every request. You may handle your own routes first. */
  fetch(request: unknown, env: unknown, ctx: unknown): Promise<any>;
};
export default worker;

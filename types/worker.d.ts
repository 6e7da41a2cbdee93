// What `bobbin/worker` exports: the Worker, and the classes of its Durable Objects.

/** An object's class, which the platform constructs. */
interface ObjectClass {
  new (ctx: unknown, env: unknown): object;
}

/** One conversation. */
export const ThreadObject: ObjectClass;
/** Which threads an owner has. */
export const DirectoryObject: ObjectClass;
/** What threads share. */
export const MemoryObject: ObjectClass;

declare const worker: {
  /** Every request; routes of one's own may be answered before. */
  fetch(request: unknown, env: unknown, ctx: unknown): Promise<any>;
};
export default worker;


// Tools, effects and hooks: `(state, ...args)`.
export default async (...args) => {
  const result = await handler(state, ...args);
  await Promise.all(open);
  return result;
};

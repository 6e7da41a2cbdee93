
// Tools, effects and hooks: `(state, ...args)`.
export default async (...args) => {
  const result = await called(state, ...args);
  await Promise.all(open);
  return result;
};

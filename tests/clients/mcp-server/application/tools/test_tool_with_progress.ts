export default async (state: { progress(text: string): void }) => {
  for (const part of ["0/100", "50/100", "100/100"]) {
    state.progress(part);
    // What code says of itself is passed on once a second.
    await new Promise((resolve) => setTimeout(resolve, 1_050));
  }
  return "done";
};

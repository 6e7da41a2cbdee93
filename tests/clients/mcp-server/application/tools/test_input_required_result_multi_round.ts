import { ask, type Call } from "../lib/ask.ts";

export default (_state: unknown, _args: object, { answers }: Call) => {
  if (!answers.step1) return ask("step1", "Step 1: What is your name?", "name");
  if (!answers.step2) return ask("step2", "Step 2: What is your favorite color?", "color");
  return `${answers.step1.content?.name} likes ${answers.step2.content?.color}.`;
};

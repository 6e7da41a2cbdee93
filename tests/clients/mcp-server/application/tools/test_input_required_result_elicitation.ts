import { ask, type Call } from "../lib/ask.ts";

export default (_state: unknown, _args: object, { answers }: Call) => {
  const answer = answers.user_name;
  if (!answer) return ask("user_name", "What is your name?", "name");
  return answer.action === "accept" ? `Hello, ${answer.content?.name}!` : "Nothing was said.";
};

import { ask, type Call } from "../lib/ask.ts";

export default (_state: unknown, _args: object, { answers }: Call) =>
  answers.user_context ? `Use this context: ${answers.user_context.content?.context}` : ask("user_context", "What context should the prompt use?", "context");

import { ask, type Call } from "../lib/ask.ts";

export default (_state: unknown, { message }: { message: string }, { answers }: Call) =>
  answers.who ? `User response: ${JSON.stringify(answers.who)}` : ask("who", message, "username", "email");

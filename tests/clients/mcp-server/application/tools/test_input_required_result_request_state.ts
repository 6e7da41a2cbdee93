import { asks, form, type Call } from "../lib/ask.ts";

export default (_state: unknown, _args: object, { answers }: Call) => {
  const answer = answers.confirm;
  if (!answer) return asks({ confirm: { message: "Please confirm", schema: form({ ok: { type: "boolean" } }) } });
  return answer.action === "accept" ? "state-ok" : "Nothing was said.";
};

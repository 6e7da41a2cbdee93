import { asks, form, type Call } from "../lib/ask.ts";

const schema = form({
  name: { type: "string", default: "John Doe" },
  age: { type: "integer", default: 30 },
  score: { type: "number", default: 95.5 },
  status: { type: "string", enum: ["active", "inactive", "pending"], default: "active" },
  verified: { type: "boolean", default: true },
});

export default (_state: unknown, _args: object, { answers }: Call) =>
  answers.about ? `Elicitation completed: ${JSON.stringify(answers.about)}` : asks({ about: { message: "Please review", schema } });

import { asks, form, type Call } from "../lib/ask.ts";

const titled = [
  { const: "value1", title: "First" },
  { const: "value2", title: "Second" },
  { const: "value3", title: "Third" },
];
const options = ["option1", "option2", "option3"];
const schema = form({
  untitledSingle: { type: "string", enum: options },
  titledSingle: { type: "string", oneOf: titled },
  legacyEnum: { type: "string", enum: ["opt1", "opt2", "opt3"], enumNames: ["Option One", "Option Two", "Option Three"] },
  untitledMulti: { type: "array", items: { type: "string", enum: options } },
  titledMulti: { type: "array", items: { anyOf: titled } },
});

export default (_state: unknown, _args: object, { answers }: Call) =>
  answers.choice ? `Elicitation completed: ${JSON.stringify(answers.choice)}` : asks({ choice: { message: "Please choose", schema } });

// Selects what answers for the models in a run: a script, a cassette, or the models themselves.

import { passedOn } from "./answers.mjs";
import { MODELS, PROMPT } from "./catalog.mjs";
import { refusal } from "./outside.mjs";

/** @typedef {import("./outside.mjs").Asked} Asked */
/** @typedef {import("./answers.mjs").Model} Model */

/** @param {import("./script.mjs").ScriptedModel} script @returns {Model} */
export const byScript = (script) => ({ asks: ({ url }) => url.origin === MODELS, answer: (asked) => script.answer(asked) });

/** @param {import("./cassette.mjs").Cassette} cassette @param {(text: string) => void} problem @returns {Model} */
export const byCassette = (cassette, problem) => ({
  asks: isOfModel,
  answer: async (asked) => (await cassette.model(asked, passedOn, problem)) ?? refusal("the request is not on the cassette", 400),
});

/** @returns {Model} */
export const byThemselves = () => ({
  asks: isOfModel,
  async answer(asked) {
    const { [PROMPT]: _, ...body } = JSON.parse(asked.body);
    return passedOn({ ...asked, body: JSON.stringify(body) });
  },
});

/** Returns whether the Worker itself sends the request to a model. Such a request names its prompt. @param {Asked} asked */
function isOfModel({ by, body }) {
  return by === undefined && body.includes(`"${PROMPT}":`);
}

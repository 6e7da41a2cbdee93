// The report of `npm start` about unusable models.

import assert from "node:assert/strict";
import { test } from "node:test";
import { modelsThatLack, withLocalModel } from "../../package/server/model-keys.mjs";

const SAMPLE = {
  models: {
    fast: { provider: "openai", baseUrl: "{{env OPENAI_BASE_URL}}", apiKeyEnv: "OPENAI_API_KEY", fallbacks: ["claude", "demo"], inputPrice: 1, cachedPrice: 1 },
    claude: { provider: "anthropic", fallbacks: [] },
    own: { provider: "openai", baseUrl: "{{env MODEL_URL}}", apiKeyEnv: "OPENAI_API_KEY" },
    demo: { provider: "demo" },
    native: { provider: "echo" },
    cloudflare: { provider: "workers-ai" },
  },
};

test("models that lack a variable are named, with what answers instead", () => {
  const lacking = (/** @type {string[]} */ ...set) => modelsThatLack(SAMPLE, (name) => set.includes(name));
  assert.deepEqual(lacking(), [
    "models/fast: OPENAI_API_KEY is not set; its fallback demo is used instead.",
    "models/claude: ANTHROPIC_API_KEY is not set; requests to it fail.",
    "models/own: MODEL_URL, which its `baseUrl` needs, is not set; requests to it fail.",
    "models/cloudflare: wrangler.toml has no binding to Workers AI (`[ai]`); requests to it fail.",
  ]);
  assert.deepEqual(lacking("OPENAI_API_KEY", "ANTHROPIC_API_KEY", "MODEL_URL", "AI"), []);
  assert.deepEqual(lacking("OPENAI_BASE_URL", "ANTHROPIC_API_KEY", "MODEL_URL", "AI"), []);
  assert.equal(lacking("OPENAI_API_KEY", "ANTHROPIC_API_KEY", "AI").length, 1, "a key does not go where nobody sent it");
});

test("a local model goes by its own name and costs nothing", () => {
  const { models } = withLocalModel(structuredClone(SAMPLE), "small");
  assert.deepEqual(
    [models?.fast?.model, models?.fast?.inputPrice, models?.fast?.outputPrice, models?.fast?.cachedPrice],
    ["small", 0, 0, undefined],
  );
  assert.equal(models?.own?.model, undefined);
});

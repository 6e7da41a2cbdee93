// The page that is generated from the description of the API.

import assert from "node:assert/strict";
import { readFileSync } from "node:fs";
import { test } from "node:test";
import { inCheckout } from "../../scripts/files.mjs";
import { reference } from "../../scripts/http-reference.mjs";

const DESCRIPTION = JSON.parse(readFileSync(inCheckout("schemas/openapi.json"), "utf8"));

test("the reference has every route and every shape once, under different anchors", () => {
  const page = reference(DESCRIPTION);
  const titles = [...page.matchAll(/^#+ (.*)$/gm)].map(([, title = ""]) => title);
  const paths = Object.entries(DESCRIPTION.paths).flatMap(([path, routes]) => Object.keys(routes).map((method) => `${method.toUpperCase()} ${path}`));
  assert.deepEqual(titles.filter((title) => title.includes("/")).sort(), paths.sort());
  for (const name of Object.keys(DESCRIPTION.components.schemas)) {
    const shown = page.split("\n").filter((line) => line === `### ${name}` || line === `\`${name}\`:`);
    assert.equal(shown.length, 1, name);
  }
  const anchors = titles.map((title) => title.toLowerCase().replace(/[^\w\- ]/g, ""));
  assert.equal(new Set(anchors).size, anchors.length);
});

test("a route shows its access, parameters, body, responses and own shapes, and links to shared shapes", () => {
  const schemas = {
    Error: { type: "object", properties: {} },
    NewNote: { type: "object", description: "A note (docs/files.md).", properties: { text: { type: "string", minLength: 1, maxLength: 9 }, kind: { anyOf: [{ $ref: "#/components/schemas/Kind" }, { type: "null" }] } }, required: ["text"] },
    Note: { type: "object", properties: { id: { type: "string", description: "A | B." } }, required: ["id"] },
    Kind: { oneOf: [{ const: "long", description: "Many lines." }, { enum: ["short"] }] },
  };
  const json = (/** @type {string} */ name) => ({ "application/json": { schema: { $ref: `#/components/schemas/${name}` } } });
  const note = { tags: ["Notes"], "x-bobbin-scope": "owner", responses: { 200: { description: "It is stored.", content: json("Note") }, default: { $ref: "#/components/responses/Error" } } };
  const page = reference({
    tags: [{ name: "Notes", description: "Texts." }],
    paths: {
      "/notes": { post: { ...note, summary: "Stores a note.", "x-bobbin-errors": ["too_large"], requestBody: { required: true, content: json("NewNote") }, parameters: [{ name: "limit", in: "query", schema: { type: "integer", minimum: 1, maximum: 5, default: 2 } }] } },
      "/notes/{id}": { get: { ...note, summary: "Reads a note." } },
    },
    components: { schemas },
  });
  const [, route = ""] = /^### POST \/notes\n(.*?)^### GET/ms.exec(page) ?? [];
  assert.equal(
    route,
    `
Stores a note.

Scope: \`owner\`. Errors: \`too_large\`.

| parameter | in | type | required | description |
|---|---|---|---|---|
| \`limit\` | query | integer, 1 to 5; \`2\` by default | | |

Body: \`NewNote\`.

| status | body | meaning |
|---|---|---|
| 200 | [Note](#note) | It is stored. |

\`NewNote\`:

A note ([files.md](files.md)).

| field | type | required | description |
|---|---|---|---|
| \`text\` | string, 1 to 9 characters | yes | |
| \`kind\` | [Kind](#kind) or null | | |

`,
  );
  assert.match(page, /^### Note\n\n.*\n.*\n\| `id` \| string \| yes \| A \\\| B\. \|$/m);
  assert.match(page, /^\| `long` \| Many lines\. \|\n\| `short` \| \|$/m);
});

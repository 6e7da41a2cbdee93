// Counts the tokens of each text in tests/fixtures/tokens.jsonl with two real vocabularies, for the tests of the estimate in
// crates/definitions/src/tokens.rs: `npm install --no-save gpt-tokenizer && node scripts/token-counts.mjs`. A new text needs only `kind` and
// `text`. The Worker uses none of this.

import { readFileSync, writeFileSync } from "node:fs";
import { inCheckout } from "./files.mjs";

const file = inCheckout("tests/fixtures/tokens.jsonl");
const vocabularies = ["o200k_base", "cl100k_base"];
const encoders = await Promise.all(vocabularies.map((name) => import(`gpt-tokenizer/encoding/${name}`)));
/** @type {{ kind: string, text: string }[]} */
const rows = readFileSync(file, "utf8").trim().split("\n").map((line) => JSON.parse(line));
const counted = rows.map(({ kind, text }) => {
  const [o200k, cl100k] = encoders.map(({ encode }) => encode(text, { disallowedSpecial: new Set() }).length);
  return JSON.stringify({ kind, text, o200k, cl100k });
});
writeFileSync(file, `${counted.join("\n")}\n`);
console.log(`${rows.length} texts`);

// Builds dist/ from src/: the API's types from its description, the client, and the hook for React.

import { readFileSync, writeFileSync } from "node:fs";
import { execFileSync } from "node:child_process";
import { gzipSync } from "node:zlib";
import { build } from "esbuild";
import openapiTS, { astToString } from "openapi-typescript";
import ts from "typescript";

/** The types of a binary body. */
const BYTES = ts.factory.createUnionTypeNode(["Blob", "ArrayBuffer", "string"].map((name) => (name === "string" ? ts.factory.createKeywordTypeNode(ts.SyntaxKind.StringKeyword) : ts.factory.createTypeReferenceNode(name))));
const types = astToString(await openapiTS(new URL("../schemas/openapi.json", import.meta.url), { transform: ({ format }) => (format === "binary" ? BYTES : undefined) }));
const note = "// Made of schemas/openapi.json by client/build.mjs.\n\n";
const path = new URL("src/api.ts", import.meta.url);
writeFileSync(path, note + types);
await build({
  entryPoints: ["src/index.ts", "src/react.ts"],
  bundle: true,
  splitting: true,
  format: "esm",
  target: "es2022",
  minify: true,
  outdir: "dist",
  external: ["react"],
  logLevel: "warning",
});
execFileSync("node_modules/.bin/tsc", { stdio: "inherit" });
const bytes = gzipSync(readFileSync(new URL("dist/index.js", import.meta.url))).length;
console.log(`client: ${bytes} bytes gzipped`);

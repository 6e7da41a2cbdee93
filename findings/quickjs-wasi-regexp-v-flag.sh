#!/usr/bin/env bash
# quickjs-wasi 3.7.0 (QuickJS-ng as WebAssembly): regular expressions with the flag `v`.
# One would guess: `/a-b/v` is what `/a-b/u` is. The rules of `v` about `-`, `/`, `&&` and other doubled punctuators are rules for the
# inside of a class (`[…]`); outside they are ordinary characters (ECMA-262, SyntaxCharacter).
# Seen: QuickJS applies them to the whole expression: a plain `-`, or `;;` between two words, is a SyntaxError. Node compiles all of them.
# The package jsonpath-plus 11.3.0 contains such an expression, and does not load.
set -euo pipefail
dir=$(mktemp -d)
trap 'rm -rf "$dir"' EXIT
cd "$dir"
npm init -y >/dev/null
npm install --silent --no-audit --no-fund quickjs-wasi@3.7.0
cat >try.mjs <<'JS'
import { readFileSync } from "node:fs";
import { createRequire } from "node:module";
import { QuickJS } from "quickjs-wasi";

const wasm = readFileSync(createRequire(import.meta.url).resolve("quickjs-wasi/quickjs.wasm"));
const vm = await QuickJS.create({ wasm });
const SOURCES = ["a-b", "a;;b", "[a-b]"];
const compiled = (source, flag) => `(() => { try { new RegExp(${JSON.stringify(source)}, "${flag}"); return "ok"; } catch (error) { return error.name; } })()`;
for (const source of SOURCES) {
  const inside = ["u", "v"].map((flag) => vm.dump(vm.evalCode(compiled(source, flag))));
  const node = ["u", "v"].map((flag) => (0, eval)(compiled(source, flag)));
  console.log(`${source}  quickjs u ${inside[0]}, v ${inside[1]}; node u ${node[0]}, v ${node[1]}`);
}
JS
seen=$(node try.mjs)
echo "$seen"
expected='a-b  quickjs u ok, v SyntaxError; node u ok, v ok
a;;b  quickjs u ok, v SyntaxError; node u ok, v ok
[a-b]  quickjs u ok, v ok; node u ok, v ok'
[ "$seen" = "$expected" ] || { echo "changed"; exit 1; }

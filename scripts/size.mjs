// `npm run size`: the size of the Worker's wasm by kind and by module, and its largest functions, so that the cost of a
// feature is visible. `npm run size -- bobbin::store` lists the functions with that in their names.

import { readFileSync } from "node:fs";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { gzipSync } from "node:zlib";
import { build } from "./build.mjs";
import { profile, wasmOf } from "./compile.mjs";
import { Complaint, main } from "./run.mjs";
import { wasmOpt } from "./wasm-opt.mjs";

/** @typedef {{ name: string, bytes: number }} Func */

/** The functions of a module with a name section. @param {Buffer} wasm @returns {Func[]} */
export function functions(wasm) {
  let at = 8;
  const byte = () => wasm[at++] ?? 0;
  const number = () => {
    for (let value = 0, scale = 1; ; scale *= 128) {
      const next = byte();
      value += (next & 127) * scale;
      if (next < 128) return value;
    }
  };
  const text = () => {
    const bytes = number();
    at += bytes;
    return wasm.toString("utf8", at - bytes, at);
  };
  const { Module } = /** @type {any} */ (globalThis).WebAssembly;
  const imported = Module.imports(new Module(wasm)).filter((/** @type {{ kind: string }} */ { kind }) => kind === "function").length;
  /** @type {number[]} */
  const sizes = [];
  /** @type {Map<number, string>} */
  const names = new Map();
  while (at < wasm.length) {
    const id = byte();
    const bytes = number();
    const end = at + bytes;
    if (id === 10) {
      for (let left = number(); left > 0; left--) {
        const body = number();
        sizes.push(body);
        at += body;
      }
    }
    if (id === 0 && text() === "name") {
      while (at < end) {
        const kind = byte();
        const next = number() + at;
        // Only the subsection of functions matters.
        for (let left = kind === 1 ? number() : 0; left > 0; left--) names.set(number(), text());
        at = next;
      }
    }
    at = end;
  }
  return sizes.map((bytes, index) => ({ name: plain(names.get(index + imported) ?? "?"), bytes }));
}

/** Removes the hashes of crates. @param {string} name */
const plain = (name) => name.replace(/\[[0-9a-f]{13,16}\]/g, "");

/** The kind of a function's code. @param {string} name */
export function kindOf(name) {
  if (/drop_in_place/.test(name)) return "dropping values";
  if (/serde\w*::(__?private::)?de\b|serde_json::(de|value::de)|Deserialize/.test(name)) return "serde: reading";
  if (/serde\w*::(__?private::)?ser\b|serde_json::(ser|value::ser)|Serialize/.test(name)) return "serde: writing";
  if (/^<*(dyn |&mut |&)?(core|alloc|std|hashbrown|dlmalloc|compiler_builtins)\b/.test(name)) return "standard library";
  if (/\bbobbin(_worker)?::/.test(name)) return "Bobbin";
  return "dependencies";
}

/** The module of Bobbin that a function belongs to: the first one in its name. @param {string} name */
const moduleOf = (name) => /\bbobbin(_worker)?::\w+/.exec(name)?.[0] ?? "(none)";

/** @param {Func[]} all @param {(name: string) => string} group */
function grouped(all, group) {
  /** @type {Map<string, Func & { count: number }>} */
  const groups = new Map();
  for (const { name, bytes } of all) {
    const key = group(name);
    const entry = groups.get(key) ?? { name: key, bytes: 0, count: 0 };
    entry.bytes += bytes;
    entry.count += 1;
    groups.set(key, entry);
  }
  return [...groups.values()].sort((a, b) => b.bytes - a.bytes);
}

/** @param {string} title @param {(Func & { count?: number })[]} rows @param {number} total */
function table(title, rows, total) {
  console.log(`\n${title}`);
  for (const { name, bytes, count } of rows) {
    const share = ((100 * bytes) / total).toFixed(1);
    const many = count === undefined ? "" : `${count}`;
    console.log(`${(bytes / 1000).toFixed(1).padStart(9)} KB ${share.padStart(5)} % ${many.padStart(6)}  ${name.slice(0, 160)}`);
  }
}

if (process.argv[1] === fileURLToPath(import.meta.url)) {
  void main(async () => {
    if (profile() === "quick") throw new Complaint("A quick Worker has no names of functions: leave BOBBIN_BUILD out.");
    const { dist } = await build();
    const named = `${wasmOf("bobbin_worker")}.named`;
    // The built wasm, with names.
    await wasmOpt(["-O1", "-g", `${wasmOf("bobbin_worker")}.glue/index_bg.wasm`, "-o", named]);
    const wanted = process.argv[2];
    const all = functions(readFileSync(named));
    const total = all.reduce((sum, { bytes }) => sum + bytes, 0);
    const wasm = readFileSync(join(dist, "index_bg.wasm"));
    const gzipped = gzipSync(wasm, { level: 9 }).length;
    console.log(`${(wasm.length / 1000).toFixed(0)} KB, ${(gzipped / 1000).toFixed(0)} KB gzipped; ${(total / 1000).toFixed(0)} KB of code`);
    const largest = all.sort((a, b) => b.bytes - a.bytes);
    if (wanted !== undefined) return table(wanted, largest.filter(({ name }) => name.includes(wanted)).slice(0, 100), total);
    table("by kind", grouped(all, kindOf), total);
    table("by module", grouped(all, moduleOf).slice(0, 25), total);
    table("the largest functions", largest.slice(0, 40), total);
  });
}

// Modules of a run (§13.2): local ones, the caller's, and nothing else.

import assert from "node:assert/strict";
import { contract, isolateServer } from "./support/isolate.mjs";

const server = isolateServer();

contract("relative imports come from the modules, whatever they are called", async (engine) => {
  const modules = {
    "./lib.ts": "import { deep } from './dir/deep.ts'; export const lib: string = 'lib ' + deep; export default class {}",
    "./dir/deep.ts": "import { up } from '../up.js'; export const deep = 'deep ' + up",
    "./up.js": "export const up = 'up'",
  };
  const source = "import Lib, { lib } from './lib.ts'; import { lib as same } from './lib'; export default [lib, same, typeof Lib]";
  assert.deepEqual(await server.value(source, { engine, modules }), ["lib deep up", "lib deep up", "function"]);
});

contract("a cycle of modules works, and a module is evaluated once", async (engine) => {
  const modules = {
    "./a.ts": "import { b } from './b.ts'; globalThis.count = (globalThis.count ?? 0) + 1; export const a = () => 'a' + b()",
    "./b.ts": "import { a } from './a.ts'; export const b = () => 'b'; export const both = () => a()",
  };
  const source = "import { a } from './a.ts'; import { both } from './b.ts'; export default async () => [a(), both(), (await import('./a.ts')).a === a, globalThis.count]";
  assert.deepEqual(await server.value(source, { engine, modules }), ["ab", "ab", true, 1]);
});

contract("import.meta has a synthetic url and nothing else", async (engine) => {
  const url = "export default [import.meta.url, Reflect.ownKeys(import.meta)]";
  const modules = { "./dir/lib.ts": url, "./lazy.ts": "export const url = import.meta.url" };
  const source = `import lib from './dir/lib.ts'; export default async () => [import.meta.url, Reflect.ownKeys(import.meta), lib, (await import('./lazy.ts')).url]`;
  const value = await server.value(source, { engine, modules, filename: "agents/tools/x.ts" });
  assert.deepEqual(value, ["sandbox:agents/tools/x.ts", ["url"], ["sandbox:dir/lib.ts", ["url"]], "sandbox:lazy.ts"]);
  assert.equal(await server.value("export default import.meta.url", { engine }), "sandbox:<runCode>");
});

contract("a module's dynamic import finds what it could import statically", async (engine) => {
  const modules = { "./a.js": "export const v = 5; export default 6" };
  const imports = { host: { default: 1, x: 2 } };
  const source = `export default async () => {
      const name = './a' + '.js'; const { v } = await import(name); const host = await import('ho' + 'st');
      return [v, (await import('./a.js')).default, host.default, host.x, host[Symbol.toStringTag]];
    }`;
  assert.deepEqual(await server.value(source, { engine, modules, imports }), [5, 6, 1, 2, "Module"]);
});

for (const specifier of [
  ...["https://example.com/a.js", "http://example.com", "file:///etc/passwd", "data:text/javascript,export default 1", "node:process"],
  ...["cloudflare:workers", "cloudflare:sockets", "fs", "unknown", "./nope.ts", "../up.ts", "/abs.js", "std", "os", "qjs:os", "bjson"],
  ...["import:host", "globals:", "sandbox:harness", "sandbox:entry", "./main.ts/../../x", ""],
]) {
  contract(`import of “${specifier}” is refused, static and computed`, async (engine) => {
    const imports = { host: { default: 1 } };
    const name = JSON.stringify(specifier);
    const fixed = await server.run(`\nimport ${name}; export default 1`, { engine, imports, filename: "main.ts" });
    assert.equal(fixed.status, "link_error");
    assert.equal(fixed.error.line, 2);
    assert.ok(fixed.error.column >= 1);
    const computed = `export default async (...parts) => { try { return [true, Object.keys(await import(parts.join("")))] } catch (e) { return [false, e instanceof Error, e.message] } }`;
    const [went, isError, message] = await server.value(computed, { engine, imports, filename: "main.ts", args: [...specifier] });
    assert.deepEqual([went, isError], [false, true], message);
  });
}

contract("a NUL in a specifier does not hide its rest", async (engine) => {
  const modules = { "./a.js": "export const v = 1" };
  for (const specifier of ["./a.js\0", "./a.js\0.ts", "\0", "./é.js\0"]) {
    const computed = "export default async (s) => { try { await import(s); return 'went' } catch (e) { return e.name } }";
    assert.notEqual(await server.value(computed, { engine, modules, args: [specifier] }), "went", JSON.stringify(specifier));
  }
  const { status } = await server.run('import "./a.js\\0"; export default 1', { engine, modules });
  assert.equal(status, "link_error");
});

contract("specifiers that are no strings are the code's own mistake", async (engine) => {
  const source = `const t = async (s) => { try { await import(s); return 'went' } catch (e) { return e.name } };
    export default async () => [await t(Symbol()), await t({ toString() { throw new RangeError() } }), await t(null), await t({ toString: () => './a.js' })]`;
  assert.deepEqual((await server.value(source, { engine, modules: { "./a.js": "" } })).toSpliced(2, 1), ["TypeError", "RangeError", "went"]);
});

contract("a name that a module does not export is a link error with its place", async (engine) => {
  const modules = { "./lib.ts": "export const there = 1" };
  const { status, error } = await server.run("import { there } from './lib.ts';\nimport { missing } from './lib.ts'; export default [there, missing]", { engine, modules });
  assert.deepEqual([status, error.line], ["link_error", 2]);
  assert.match(error.message, /missing/);
});

contract("a mistake in a module is told with the module's name and place", async (engine) => {
  const modules = { "./lib.ts": "export const a = 1;\n\nexport const b = ;" };
  const { status, error } = await server.run("import { a } from './lib.ts'; export default a", { engine, modules });
  assert.deepEqual([status, error.filename, error.line], ["link_error", "lib.ts", 3]);
});

contract("code of a module that throws fails the run with its place", async (engine) => {
  const modules = { "./lib.ts": "\nthrow new RangeError('at home')" };
  const { status, error } = await server.run("import './lib.ts'; export default 1", { engine, modules });
  assert.deepEqual([status, error.name, error.filename, error.line], ["error", "RangeError", "lib.ts", 2]);
});

contract("a dynamic import of a module that throws can be caught", async (engine) => {
  const modules = { "./lib.ts": "throw new RangeError('at home')" };
  const source = "export default async () => { try { await import('./lib.ts') } catch (e) { return e.name } }";
  assert.equal(await server.value(source, { engine, modules }), "RangeError");
});

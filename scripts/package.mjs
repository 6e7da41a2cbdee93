// `npm run package`: builds the npm packages in dist-package/bobbin and dist-package/create-bobbin, and their tarballs beside
// them, which are published. They need no Rust.
//
//   dist/            the Worker; its catalog is the module `bobbin:catalog`
//   dist-isolate/    the isolate Worker
//   cargo (wasm) → wasm-opt → Brotli                the compiler of definitions, from package/compiler/
//   package/         commands, templates, the server for one machine
//   client/, schemas/, types/, isolate/web/    as they are
//   docs/, llms.txt  the documents, from package-docs.mjs

import { cpSync, existsSync, mkdirSync, readdirSync, readFileSync, rmSync, statSync, writeFileSync } from "node:fs";
import { homedir } from "node:os";
import { dirname, extname, join, relative } from "node:path";
import { fileURLToPath } from "node:url";
import { brotliCompressSync } from "node:zlib";
import { build } from "./build.mjs";
import { buildClient } from "./client.mjs";
import { TARGET_DIR } from "./compile.mjs";
import { cache, contentHash, hash, inCheckout, locked, readIfThere, root } from "./files.mjs";
import { writeDocs } from "./package-docs.mjs";
import { cargo, Complaint, main, run, step } from "./run.mjs";
import { TARGET, wasmEnv } from "./rust.mjs";
import { setUp } from "./setup.mjs";
import { wasmOpt } from "./wasm-opt.mjs";

export const PACKAGES = inCheckout("dist-package");
const BOBBIN = join(PACKAGES, "bobbin");
const CREATE = join(PACKAGES, "create-bobbin");

const COMPILER = inCheckout(`target/${TARGET}/release/bobbin_catalog.wasm`);
/** The sources of the compiler. */
const COMPILER_SOURCES = ["Cargo.toml", "Cargo.lock", "crates/definitions", "package/compiler/Cargo.toml", "package/compiler/src", "package-lock.json", "scripts/build", "scripts/rust.mjs", "scripts/package.mjs"];

/** Files of the repository that are packed unchanged: a folder, the endings to include, and the target. */
const FOLDERS = [
  { from: "package/bin", endings: [".mjs"] },
  { from: "package/client", endings: [".js", ".ts"] },
  { from: "package/commands", endings: [".mjs"] },
  { from: "package/compiler", endings: [".mjs"] },
  { from: "package/lib", endings: [".mjs"] },
  { from: "package/mcp", endings: [".mjs"] },
  { from: "package/schemas", endings: [".json"], to: "schemas" },
  { from: "package/server", endings: [".mjs"] },
  { from: "package/test", endings: [".mjs", ".ts", ".js", ".json"] },
  { from: "schemas", endings: [".json"], to: "schemas" },
  { from: "types", endings: [".ts"], to: "types" },
  { from: "isolate/web", endings: [".js"], to: "dist/web" },
];
const FILES = ["LICENSE"];
/** Packed completely, whatever the endings. */
const TEMPLATES = "package/templates";

const WORKER = ["index.js", "index_bg.wasm"];
const ISOLATE = ["index.js", "compiler.wasm", "quickjs.wasm"];

/**
 * Assembles both packages.
 *
 * @returns {Promise<{ bobbin: string, create: string }>} their folders
 */
export async function buildPackages() {
  const { dist: worker, isolate } = await build();
  await buildClient();
  const compiler = await buildCompiler((await setUp()).compiler);
  const stamps = [join(worker, ".stamp"), join(isolate, ".stamp"), `${compiler}.stamp`].map((path) => readIfThere(path) ?? "");
  const stamp = hash(contentHash(["package", "create-bobbin", "schemas", "types", "isolate/web", "docs", "README.md", "scripts/package.mjs", "scripts/package-docs.mjs", ...FILES]), ...stamps);
  await locked(inCheckout(".bobbin/package.lock"), async () => {
    // Tests may be using it.
    if (readIfThere(join(PACKAGES, ".stamp")) === stamp) return;
    rmSync(PACKAGES, { recursive: true, force: true });
    for (const { from, endings, to = relative("package", from) } of FOLDERS) copyFolder(inCheckout(from), join(BOBBIN, to), endings);
    cpSync(inCheckout(TEMPLATES), join(BOBBIN, "templates"), { recursive: true });
    for (const name of FILES) [BOBBIN, CREATE].forEach((to) => copy(inCheckout(name), join(to, name)));
    copy(inCheckout("package/package.json"), join(BOBBIN, "package.json"));
    copy(inCheckout("package/README.md"), join(BOBBIN, "README.md"));
    for (const name of WORKER) copy(join(worker, name), join(BOBBIN, "dist/worker", name));
    for (const name of ISOLATE) copy(join(isolate, name), join(BOBBIN, "dist/isolate", name));
    copy(compiler, join(BOBBIN, "dist/compiler.wasm.br"));
    copy(inCheckout("crates/definitions/src/validate/known.json"), join(BOBBIN, "schemas/known-models.json"));
    nameCatalog(join(BOBBIN, "dist/worker/index.js"));
    // Last, because links depend on the files that are there.
    writeDocs(BOBBIN);
    for (const name of ["package.json", "create-bobbin.mjs"]) copy(inCheckout(`create-bobbin/${name}`), join(CREATE, name));
    copy(inCheckout("package/README.md"), join(CREATE, "README.md"));
    for (const file of filesOf(PACKAGES)) withoutPaths(file);
    writeFileSync(join(PACKAGES, ".stamp"), stamp);
  });
  return { bobbin: BOBBIN, create: CREATE };
}

/** The compiler of definitions as wasm. @param {import("./rust.mjs").Compiler} rust @returns {Promise<string>} */
export async function buildCompiler(rust) {
  const small = COMPILER.replace(/\.wasm$/, ".small.wasm");
  const packed = `${COMPILER}.br`;
  const stamp = hash(contentHash(COMPILER_SOURCES), rust.sysroot);
  const isBuilt = () => readIfThere(`${packed}.stamp`) === stamp && existsSync(packed);
  if (isBuilt()) return packed;
  await locked(inCheckout(".bobbin/build-compiler.lock"), async () => {
    if (isBuilt()) return;
    await step("compiler of definitions (Rust)", (note) =>
      cargo(["build", "--release", "--target", TARGET, "-p", "bobbin-catalog", ...TARGET_DIR], note, { cwd: root, env: wasmEnv(rust) }),
    );
    await step("compiler of definitions (wasm-opt)", () =>
      // Compressed, this order makes it an eighth smaller (worker.mjs). Higher levels shrink the file but enlarge it compressed.
      wasmOpt([COMPILER, "-O1", "--reorder-functions-by-name", "--strip-debug", "--strip-producers", "-o", small]),
    );
    withoutPaths(small);
    writeFileSync(packed, brotliCompressSync(readFileSync(small)));
    writeFileSync(`${packed}.stamp`, stamp);
  });
  return packed;
}

/** @param {string} from @param {string} to */
function copy(from, to) {
  mkdirSync(dirname(to), { recursive: true });
  cpSync(from, to);
}

/** @param {string} from @param {string} to @param {string[]} endings */
function copyFolder(from, to, endings) {
  if (!existsSync(from)) return;
  for (const file of filesOf(from)) if (endings.includes(extname(file))) copy(file, join(to, relative(from, file)));
}

/** @param {string} folder */
const filesOf = (folder) => readdirSync(folder, { recursive: true, encoding: "utf8" }).map((name) => join(folder, name)).filter((path) => statSync(path).isFile());

/** Replaces the import of the catalog: the project's configuration decides where its definitions are. @param {string} path */
export function nameCatalog(path) {
  const text = readFileSync(path, "utf8");
  const named = text.replace('from "./catalog.json"', 'from "bobbin:catalog"');
  if (named === text) throw new Complaint("The Worker does not import catalog.json as expected.");
  writeFileSync(path, named);
}

/** Paths of this machine. */
const PLACES = [root, cache, homedir()].filter((place) => place.length > 3);

/** Removes this machine's paths from a file: panics name their sources. @param {string} path */
function withoutPaths(path) {
  const before = readFileSync(path);
  let text = before.toString("latin1");
  // Keep the length, because wasm contains offsets.
  for (const place of PLACES) text = text.replaceAll(`${place}/`, `/${"-".repeat(place.length - 1)}/`);
  const after = Buffer.from(text, "latin1");
  if (after.equals(before)) return;
  if (extname(path) !== ".wasm") throw new Complaint(`${path} names a place of this machine.`);
  writeFileSync(path, after);
}

/**
 * Packs folders of packages, and returns the paths of the tarballs.
 *
 * @param {string[]} folders @param {string} into @returns {Promise<string[]>}
 */
export async function pack(folders, into) {
  const tarballs = [];
  for (const folder of folders) {
    const { name, version } = JSON.parse(readFileSync(join(folder, "package.json"), "utf8"));
    await run("npm", ["pack", "--silent", "--pack-destination", into], { cwd: folder });
    tarballs.push(join(into, `${name}-${version}.tgz`));
  }
  return tarballs;
}

if (process.argv[1] === fileURLToPath(import.meta.url)) {
  await main(async () => {
    const { bobbin, create } = await buildPackages();
    for (const tarball of await pack([bobbin, create], PACKAGES)) {
      console.log(`  ${relative(root, tarball)}: ${(statSync(tarball).size / 1e6).toFixed(1)} MB`);
    }
    console.log(`\nA project of your own:\n\n  node ${relative(root, join(bobbin, "bin/bobbin.mjs"))} init ../my-agent --install`);
  });
}

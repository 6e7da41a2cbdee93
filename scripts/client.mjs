// The TypeScript client (client/) as a part of the package: package/client/, with the types of what it is made of, so that
// nothing else has to be installed.

import { cpSync, existsSync, readFileSync, readdirSync, renameSync, rmSync, statSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { contentHash, hash, inCheckout, locked, readIfThere } from "./files.mjs";
import { run, step } from "./run.mjs";

const CLIENT = inCheckout("client");
const PACKAGED = inCheckout("package/client");
const SOURCES = ["client/src", "client/build.mjs", "client/tsconfig.json", "client/package-lock.json", "schemas/openapi.json", "scripts/client.mjs"];
/** It is made by the build itself. */
const MADE = "client/src/api.ts";

/** Packages whose types the client's own are made of. */
const TYPES_OF = ["openapi-fetch", "openapi-typescript-helpers"];

/** Builds what is out of date: package/client/ is then there. */
export async function buildClient() {
  if (isBuilt()) return;
  await locked(inCheckout(".bobbin/client.lock"), async () => {
    if (isBuilt()) return;
    await installPackages();
    rmSync(join(CLIENT, "dist"), { recursive: true, force: true });
    await step("client", () => run(process.execPath, ["build.mjs"], { cwd: CLIENT }));
    const building = `${PACKAGED}.building`;
    rmSync(building, { recursive: true, force: true });
    cpSync(join(CLIENT, "dist"), building, { recursive: true });
    addTypes(building);
    writeFileSync(join(building, ".stamp"), stamp());
    rmSync(PACKAGED, { recursive: true, force: true });
    renameSync(building, PACKAGED);
  });
}

const stamp = () => hash(contentHash(SOURCES.flatMap((path) => (path === "client/src" ? written() : [path]))));

const written = () => readdirSync(join(CLIENT, "src")).map((name) => `client/src/${name}`).filter((path) => path !== MADE);

const isBuilt = () => readIfThere(join(PACKAGED, ".stamp")) === stamp();

async function installPackages() {
  const installed = join(CLIENT, "node_modules/.package-lock.json");
  if (existsSync(installed) && statSync(installed).mtimeMs >= statSync(join(CLIENT, "package-lock.json")).mtimeMs) return;
  await step("npm packages of the client", () => run("npm", ["ci"], { cwd: CLIENT }));
}

/** Puts the types of other packages beside those of the client, which name them by where they are. @param {string} folder */
function addTypes(folder) {
  for (const name of TYPES_OF) cpSync(join(CLIENT, "node_modules", name, "dist/index.d.ts"), join(folder, `${name}.d.ts`));
  for (const file of readdirSync(folder).filter((name) => name.endsWith(".d.ts"))) {
    const path = join(folder, file);
    const text = readFileSync(path, "utf8");
    writeFileSync(path, TYPES_OF.reduce((done, name) => done.replaceAll(`from "${name}"`, `from "./${name}.js"`).replaceAll(`from '${name}'`, `from './${name}.js'`), text));
  }
}

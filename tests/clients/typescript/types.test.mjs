// The types that the client is published with, and its sources, under the versions of TypeScript that people have.

import { execFile } from "node:child_process";
import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { after, before, test } from "node:test";
import { fileURLToPath } from "node:url";
import { promisify } from "node:util";
import { buildClient } from "../support/client-build.mjs";

const folder = fileURLToPath(new URL(".", import.meta.url));
const scratch = mkdtempSync(join(tmpdir(), "bobbin-types-"));
after(() => rmSync(scratch, { recursive: true }));
before(() => buildClient());

/** @param {string} version @param {string[]} args */
async function compile(version, args) {
  const tsc = join(folder, "node_modules", `typescript-${version}`, "bin/tsc");
  try {
    await promisify(execFile)(process.execPath, [tsc, ...args], { cwd: folder });
  } catch (error) {
    throw new Error(/** @type {{ stdout: string }} */ (error).stdout);
  }
}

for (const version of ["5", "6"]) {
  test(`TypeScript ${version}: the types of the API compile, and a program with them`, async () => {
    const { dist, modules } = await buildClient();
    const options = {
      compilerOptions: {
        target: "es2022",
        module: "esnext",
        moduleResolution: "bundler",
        lib: ["es2023", "dom", "dom.iterable"],
        types: [],
        strict: true,
        noUncheckedIndexedAccess: true,
        exactOptionalPropertyTypes: true,
        noEmit: true,
        // What is published is looked at, too.
        skipLibCheck: false,
        paths: {
          "bobbin-client": [join(dist, "index.d.ts")],
          "bobbin-client/react": [join(dist, "react.d.ts")],
          "openapi-fetch": [join(modules, "openapi-fetch")],
        },
      },
      files: [join(folder, "program.ts")],
    };
    const config = join(scratch, `tsconfig-${version}.json`);
    writeFileSync(config, JSON.stringify(options));
    await compile(version, ["-p", config]);
  });

  test(`TypeScript ${version}: the client's sources compile`, async () => {
    const { root } = await buildClient();
    await compile(version, ["-p", join(root, "tsconfig.json"), "--outDir", join(scratch, version)]);
  });
}

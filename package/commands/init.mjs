// `bobbin init`: creates a project.

import { spawnSync } from "node:child_process";
import { existsSync, mkdirSync, readFileSync, readdirSync, statSync, writeFileSync } from "node:fs";
import { basename, dirname, join, relative, resolve } from "node:path";
import { fileURLToPath } from "node:url";
import { Complaint, EXIT } from "../lib/complaint.mjs";
import { shown } from "../lib/files.mjs";
import { isCheckout } from "../lib/rust.mjs";
import { VERSION } from "../lib/version.mjs";

const TEMPLATES = fileURLToPath(new URL("../templates", import.meta.url));

/** A description of each template. */
const SUMMARIES = {
  chat: "an assistant with a chat page, built with the AI SDK",
  "support-desk": "subagents, approvals and memory: a desk that looks up orders, and asks before a refund",
  "scheduled-report": "effects: a report that an agent writes on a schedule",
  blank: "one agent with one tool",
};

/** The default dependency on Bobbin: the tarball next to this package, otherwise its version. */
const PACKED = fileURLToPath(new URL(`../../bobbin-${VERSION}.tgz`, import.meta.url));
const DEPENDENCY = existsSync(PACKED) ? PACKED : `^${VERSION}`;

/** Files with other names in the package, because npm treats the real names specially. */
const RENAMED = { gitignore: ".gitignore", "dev.vars.example": ".dev.vars.example" };

/** @type {import("./index.mjs").Command} */
export const command = {
  usage: "init [dir] [--template NAME] [--install] [--rust --checkout DIR]",
  help: `  --template NAME   ${Object.entries(SUMMARIES).map(([name, summary]) => `${name.padEnd(17)} ${summary}`).join(`\n${" ".repeat(20)}`)}
                    (default blank)
  --rust            adds a crate for your own native tools; needs Rust and Bobbin's repository
  --checkout DIR    the folder of that repository (default ../bobbin, next to the project)
  --install         runs the package manager's \`install\` in the project
  --package SPEC    the \`bobbin\` that the project depends on: a version or the path of a tarball (default ${shown(DEPENDENCY)})

The folder (default: this one) may contain other files. None is replaced.`,
  options: {
    template: { type: "string", default: "blank" },
    install: { type: "boolean", default: false },
    rust: { type: "boolean", default: false },
    checkout: { type: "string" },
    package: { type: "string", default: DEPENDENCY },
  },
  run: async (values, [dir = ".", ...more]) => {
    if (more.length > 0) throw new Complaint("`bobbin init` takes one folder.", EXIT.usage);
    const { template } = values;
    if (!(template in SUMMARIES)) {
      throw new Complaint(`There is no template “${template}”. The templates are ${Object.keys(SUMMARIES).join(", ")}.`, EXIT.usage);
    }
    const target = resolve(dir);
    const spec = existsSync(resolve(values["package"])) ? `file:${resolve(values["package"])}` : values["package"];
    const checkout = values["rust"] ? checkoutOf(values["checkout"] ?? join(target, "../bobbin")) : undefined;
    const files = layered(["common", template, ...(checkout === undefined ? [] : ["rust"])], {
      NAME: nameOf(target),
      BOBBIN: spec,
      CHECKOUT: checkout === undefined ? "" : portable(relative(join(target, "rust"), checkout)),
    });
    if (checkout !== undefined) withCrate(files, target, checkout);
    const taken = [...files.keys()].filter((path) => existsSync(join(target, path)));
    if (taken.length > 0) throw new Complaint(`${shown(target)} already contains ${taken.join(", ")}. Choose another folder.`, EXIT.usage);
    for (const [path, text] of files) {
      mkdirSync(dirname(join(target, path)), { recursive: true });
      writeFileSync(join(target, path), text);
    }
    if (values["install"]) install(target);
    const steps = [...(relative("", target) === "" ? [] : [`cd ${shown(target)}`]), ...(values["install"] ? [] : ["npm install"]), "npm run dev"];
    console.log(`${shown(target)} is now a project (${template}: ${SUMMARIES[/** @type {keyof typeof SUMMARIES} */ (template)]}). Next:\n\n  ${steps.join("\n  ")}`);
  },
};

/** Returns the checkout of Bobbin's repository. @param {string} given */
function checkoutOf(given) {
  const checkout = resolve(given);
  if (isCheckout(checkout)) return checkout;
  throw new Complaint(
    `${shown(checkout)} is not Bobbin's repository. Your crate needs Bobbin's crates, which are in no registry. Clone the repository, and name its folder with --checkout DIR.`,
    EXIT.usage,
  );
}

/** Cargo and npm use slashes on every platform. @param {string} path */
const portable = (path) => path.replaceAll("\\", "/");

/**
 * Changes the project's files so that it can have its own crate.
 * @param {Map<string, string>} files @param {string} target @param {string} checkout
 */
function withCrate(files, target, checkout) {
  // Use the locked versions of Bobbin's build. The wasm's glue code depends on them.
  files.set(join("rust", "Cargo.lock"), readFileSync(join(checkout, "Cargo.lock"), "utf8"));
  const at = { bobbin: { checkout: portable(relative(target, checkout)) } };
  files.set("package.json", merged(files.get("package.json") ?? "{}", JSON.stringify(at)));
  const config = files.get("wrangler.jsonc") ?? "";
  const aliased = config.replace('"alias": { ', '"alias": { "bobbin/worker": "./.bobbin/worker/index.js", ');
  if (aliased === config) throw new Error("the template's wrangler.jsonc has no alias");
  files.set("wrangler.jsonc", aliased);
}

/**
 * Merges the files of several templates. Later templates override earlier ones.
 *
 * @param {string[]} names
 * @param {Record<string, string>} words   the replacements of `__WORD__`
 */
function layered(names, words) {
  /** @type {Map<string, string>} */
  const files = new Map();
  /** @param {string} folder @param {string} path */
  const add = (folder, path) => {
    const from = join(folder, path);
    if (statSync(from).isDirectory()) return readdirSync(from).sort().forEach((name) => add(folder, join(path, name)));
    const text = readFileSync(from, "utf8").replace(/__([A-Z]+)__/g, (all, word) => words[word] ?? all);
    const name = basename(path);
    const to = join(dirname(path), RENAMED[/** @type {keyof typeof RENAMED} */ (name)] ?? name);
    const before = files.get(to);
    files.set(to, before !== undefined && name === "package.json" ? merged(before, text) : text);
  };
  for (const name of names) add(join(TEMPLATES, name), "");
  return files;
}

/** Merges two package.json files. Nested objects are merged, too. @param {string} below @param {string} above */
function merged(below, above) {
  /** @param {any} a @param {any} b @returns {any} */
  const over = (a, b) => {
    const areObjects = [a, b].every((value) => typeof value === "object" && value !== null && !Array.isArray(value));
    return areObjects ? { ...a, ...b, ...Object.fromEntries(Object.keys(b).filter((key) => key in a).map((key) => [key, over(a[key], b[key])])) } : b;
  };
  return `${JSON.stringify(over(JSON.parse(below), JSON.parse(above)), null, 2)}\n`;
}

/** Returns a valid name for the Worker: lower-case letters, digits and dashes. @param {string} target */
function nameOf(target) {
  const name = basename(target).toLowerCase().replace(/[^a-z0-9]+/g, "-").replace(/^-+|-+$/g, "").slice(0, 53);
  return name === "" ? "my-agent" : name;
}

/** Runs the package manager that started this program, or npm. @param {string} cwd */
function install(cwd) {
  const { npm_execpath: manager } = process.env;
  const [program, ...args] = manager === undefined ? ["npm"] : /\.[cm]?js$/.test(manager) ? [process.execPath, manager] : [manager];
  // On Windows npm is a batch file, which needs a shell. No argument comes from input.
  const { status, error } = spawnSync(program ?? "npm", [...args, "install"], { cwd, stdio: "inherit", shell: process.platform === "win32" && manager === undefined });
  if (error || status !== 0) throw new Complaint(`The packages could not be installed. Run \`npm install\` in ${shown(cwd)}.`);
}

// Builds the inspector: one page of everything in inspector/, with its style and script inline, and a policy that allows
// nothing else. `node scripts/inspector.mjs` prints its size.

import { createHash } from "node:crypto";
import { readFileSync, writeFileSync } from "node:fs";
import { fileURLToPath } from "node:url";
import { gzipSync } from "node:zlib";
import { inCheckout } from "./files.mjs";
import { Complaint } from "./run.mjs";

/** The size limit of the page, gzipped. */
export const MOST_BYTES = 60 * 1024;

/** The sources of the page. */
export const INSPECTOR_SOURCES = [
  "inspector",
  "scripts/inspector.mjs",
  ...["connection", "errors", "frames", "thread", "view"].map((name) => `client/src/${name}.ts`),
];

/**
 * The page and its Content-Security-Policy.
 *
 * @returns {Promise<{ html: string, policy: string, tag: string, gzipped: number }>}
 */
export async function inspector() {
  // Imported late: on a fresh machine the set-up installs it first.
  const { build } = await import("esbuild");
  const result = await build({
    entryPoints: [inCheckout("inspector/main.js"), inCheckout("inspector/style/main.css")],
    outdir: inCheckout("."),
    alias: { "bobbin-client": inCheckout("client/src") },
    bundle: true,
    minify: true,
    format: "iife",
    target: ["chrome120", "firefox120", "safari17.5"],
    legalComments: "none",
    write: false,
    logLevel: "silent",
  });
  const made = (/** @type {string} */ end) => result.outputFiles.find(({ path }) => path.endsWith(end))?.text.trim() ?? "";
  const [script, style] = [made(".js"), made(".css")];
  // A function, because `$` is special in a replacement text.
  const html = readFileSync(inCheckout("inspector/page.html"), "utf8")
    .replace("/* style */", () => style)
    .replace("/* script */", () => script);
  const sum = (/** @type {string} */ text) => createHash("sha256").update(text).digest("base64");
  const policy = [
    "default-src 'none'",
    `script-src 'sha256-${sum(script)}'`,
    `style-src 'sha256-${sum(style)}'`,
    "connect-src 'self'",
    "img-src 'self' data: blob:",
    "base-uri 'none'",
    "form-action 'none'",
    "frame-ancestors 'none'",
    "require-trusted-types-for 'script'",
    "trusted-types 'none'",
  ].join("; ");
  const gzipped = gzipSync(html, { level: 9 }).length;
  if (gzipped > MOST_BYTES) throw new Complaint(`The inspector has ${gzipped} bytes gzipped; at most ${MOST_BYTES} are allowed.`);
  return { html, policy, tag: sum(html).slice(0, 16), gzipped };
}

/** Writes the page as a module for the Worker. @param {string} file */
export async function writeInspector(file) {
  const { html, policy, tag } = await inspector();
  const exported = Object.entries({ html, policy, tag }).map(([name, text]) => `export const ${name} = ${JSON.stringify(text)};\n`);
  writeFileSync(file, exported.join(""));
}

if (process.argv[1] === fileURLToPath(import.meta.url)) {
  const { html, gzipped } = await inspector();
  console.log(`inspector: ${(html.length / 1024).toFixed(1)} KB, ${(gzipped / 1024).toFixed(1)} KB gzipped`);
}

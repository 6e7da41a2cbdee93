// Builds the page with its script in it: .bobbin/page.html. `bobbin dev`, `build` and `serve` run this program
// (`bobbin.page` in package.json).

import { mkdirSync, readFileSync, writeFileSync } from "node:fs";
import { fileURLToPath } from "node:url";
import { build } from "esbuild";

const here = (/** @type {string} */ name) => fileURLToPath(new URL(name, import.meta.url));

const { outputFiles } = await build({
  entryPoints: [here("main.tsx")],
  bundle: true,
  minify: true,
  jsx: "automatic",
  target: "es2022",
  define: { "process.env.NODE_ENV": '"production"' },
  write: false,
});
// A script ends at the first `</script`, even within a string.
const script = (outputFiles[0]?.text ?? "").replaceAll("</script", "<\\/script");
mkdirSync(here("../.bobbin"), { recursive: true });
writeFileSync(here("../.bobbin/page.html"), readFileSync(here("page.html"), "utf8").replace("/*SCRIPT*/", () => script));

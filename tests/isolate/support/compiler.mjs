// The compiler of the isolate Worker in Node, and what it is compared with: TypeScript's own output.

import { readFileSync, readdirSync } from "node:fs";
import { join } from "node:path";
import ts from "typescript";
import { inCheckout } from "../../../scripts/files.mjs";
import { sandboxCompiler } from "../../../scripts/compile.mjs";

/**
 * @typedef {{ name: string, message: string, line?: number, column?: number, filename?: string }} Mistake
 * @typedef {{ modules?: { name: string, code: string }[], error?: Mistake }} Answer
 * @typedef {[specifier: string, source: string]} Module
 * @typedef {object} Options
 * @property {"typescript" | "javascript"} [language]
 * @property {Module[]} [modules]
 * @property {Record<string, string[]>} [imports]
 * @property {"written" | "keyed"} [links]
 */

// Node's types do not have it.
const { WebAssembly } = /** @type {any} */ (globalThis);
const module = new WebAssembly.Module(readFileSync(sandboxCompiler()));
const wasm = new WebAssembly.Instance(module).exports;

/** An export that every main module gets, as the linker wants one. */
const EXPORT = "\nexport function __main() {}\n";

/** Compiles a main module. @param {string} source @param {Options} [options] @returns {Answer} */
export function compile(source, { language = "typescript", modules = [], imports = {}, links = "written" } = {}) {
  const main = { filename: "<runCode>", source: source + EXPORT, language };
  const request = new TextEncoder().encode(JSON.stringify({ main, modules, imports, globals: [], fn: "__main", links }));
  const at = wasm.alloc(request.length);
  new Uint8Array(wasm.memory.buffer, at, request.length).set(request);
  const packed = BigInt.asUintN(64, wasm.compile(at, request.length));
  const [from, length] = [Number(packed >> 32n), Number(packed & 0xffffffffn)];
  const text = new TextDecoder().decode(new Uint8Array(wasm.memory.buffer, from, length));
  wasm.dealloc(from, length);
  wasm.dealloc(at, request.length);
  return JSON.parse(text);
}

/** The code of a main module without the added export; throws when it is refused. @param {string} source @param {Options} [options] */
export function code(source, options) {
  const { modules, error } = compile(source, options);
  if (error) throw new Error(`${error.line}:${error.column}: ${error.name}: ${error.message}`);
  const text = modules?.[0]?.code ?? "";
  if (!text.endsWith(EXPORT)) throw new Error(`the last line was changed: ${text.slice(-80)}`);
  return text.slice(0, -EXPORT.length);
}

/** What TypeScript makes of a module. @param {string} source */
export function reference(source) {
  /** @type {import("typescript").CompilerOptions} */
  const compilerOptions = {
    target: ts.ScriptTarget.ESNext,
    module: ts.ModuleKind.ESNext,
    isolatedModules: true,
    verbatimModuleSyntax: false,
    removeComments: true,
  };
  // Without an import or export it would not be a module.
  return ts.transpileModule(`${source}\nexport {};`, { compilerOptions }).outputText;
}

/** The TypeScript sources below a folder of an installed package. @param {string} folder @returns {string[]} */
export function sources(folder) {
  const root = inCheckout(join("node_modules", folder));
  return readdirSync(root, { recursive: true, encoding: "utf8" })
    .filter((name) => /\.m?ts$/.test(name) && !/\.d\.m?ts$/.test(name) && !name.split("/").includes("node_modules"))
    .sort()
    .map((name) => join(root, name));
}

/** Of many files a third in a sample, others with each seed. @param {string[]} files */
export function sampled(files) {
  const seed = process.env.BOBBIN_SAMPLE;
  return seed === undefined || files.length < 60 ? files : files.filter((_, at) => (at + Number(seed)) % 3 === 0);
}

/**
 * Modules that have every name that a source imports. Bare specifiers are changed in it into ones that the compiler
 * takes.
 *
 * @param {string} source
 * @returns {{ source: string, modules: Module[], imports: Record<string, string[]> }}
 */
export function surroundings(source) {
  /** @type {Map<string, Set<string>>} */
  const wanted = new Map();
  /** @type {{ start: number, end: number }[]} */
  const urls = [];
  for (const statement of parse(source, ts.ScriptKind.TS).statements) {
    if (!ts.isImportDeclaration(statement) && !ts.isExportDeclaration(statement)) continue;
    const specifier = statement.moduleSpecifier;
    if (!specifier || !ts.isStringLiteral(specifier)) continue;
    if (/^\w+:/.test(specifier.text)) urls.push({ start: specifier.pos, end: specifier.end });
    const names = wanted.get(specifier.text) ?? new Set();
    wanted.set(specifier.text, names);
    if (ts.isImportDeclaration(statement)) {
      if (statement.importClause?.name) names.add("default");
      const bindings = statement.importClause?.namedBindings;
      if (bindings && ts.isNamedImports(bindings)) bindings.elements.forEach((it) => names.add((it.propertyName ?? it.name).text));
    } else if (statement.exportClause && ts.isNamedExports(statement.exportClause)) {
      statement.exportClause.elements.forEach((it) => names.add((it.propertyName ?? it.name).text));
    }
  }
  let changed = source;
  for (const { start, end } of urls) changed = changed.slice(0, start) + changed.slice(start, end).replace(":", "/") + changed.slice(end);
  /** @type {Module[]} */
  const modules = [];
  /** @type {Record<string, string[]>} */
  const imports = {};
  for (const [specifier, names] of wanted) {
    if (!/^\.\.?(\/|$)/.test(specifier)) {
      imports[specifier.replace(/^(\w+):/, "$1/")] = [...names];
      continue;
    }
    const stub = [...names].map((name, at) => (name === "default" ? "export default 0;" : `const x${at} = 0; export { x${at} as ${name} };`));
    const folder = specifier === "." || specifier === ".." || specifier.endsWith("/");
    const name = folder ? `${specifier.replace(/\/$/, "")}/index.js` : specifier.endsWith(".json") ? `${specifier}.js` : specifier;
    if (!modules.some(([other]) => other === name)) modules.push([name, stub.join(" ")]);
  }
  return { source: changed, modules, imports };
}

/** Whether a source has what becomes code: an enum, a namespace or a parameter property. @param {string} source */
export function hasCodeOfTypes(source) {
  /** @param {import("typescript").Node} node @returns {boolean} */
  const has = (node) =>
    ts.isEnumDeclaration(node) ||
    ts.isModuleDeclaration(node) ||
    (ts.isParameter(node) && (node.modifiers?.length ?? 0) > 0) ||
    (ts.forEachChild(node, (child) => has(child) || undefined) ?? false);
  return has(parse(source, ts.ScriptKind.TS));
}

/** @param {string} text @param {import("typescript").ScriptKind} kind */
function parse(text, kind) {
  return ts.createSourceFile("source", text, ts.ScriptTarget.ESNext, false, kind);
}

/**
 * The syntax tree of a module as a list, without what means nothing: parentheses, empty statements, comments, empty
 * braces of imports and exports. A number that an enum's member gets is left out too: TypeScript computes it, and our
 * code does when it runs.
 *
 * @param {string} text
 * @returns {string[]}
 */
export function shape(text) {
  const file = parse(text, ts.ScriptKind.JS);
  const [mistake] = /** @type {{ parseDiagnostics: import("typescript").Diagnostic[] }} */ (/** @type {unknown} */ (file)).parseDiagnostics;
  if (mistake) throw new Error(`${ts.flattenDiagnosticMessageText(mistake.messageText, " ")}: ${text.slice((mistake.start ?? 0) - 40, (mistake.start ?? 0) + 40)}`);
  /** @type {string[]} */
  const shape = [];
  /** @param {import("typescript").Node} node */
  const visit = (node) => {
    if (ts.isEmptyStatement(node) || ts.isSemicolonClassElement(node)) return;
    if (ts.isParenthesizedExpression(node)) return visit(node.expression);
    if (ts.isNamedImports(node) && node.elements.length === 0) return;
    if (ts.isExportDeclaration(node) && !node.moduleSpecifier && node.exportClause && ts.isNamedExports(node.exportClause) && node.exportClause.elements.length === 0) return;
    if (isNumericMember(node)) {
      shape.push(`member ${node.left.expression.getText(file)} ${node.right.text}`);
      return;
    }
    shape.push(describe(node), "(");
    ts.forEachChild(node, visit);
    shape.push(")");
  };
  visit(file);
  return shape;
}

/**
 * `E[E["A"] = …] = "A"`
 *
 * @param {import("typescript").Node} node
 * @returns {node is import("typescript").BinaryExpression & { left: import("typescript").ElementAccessExpression, right: import("typescript").StringLiteral }}
 */
function isNumericMember(node) {
  return (
    ts.isBinaryExpression(node) &&
    ts.isElementAccessExpression(node.left) &&
    ts.isBinaryExpression(node.left.argumentExpression) &&
    ts.isStringLiteral(node.right)
  );
}

/** What a node is beyond its children. @param {import("typescript").Node} node */
function describe(node) {
  let text = ts.SyntaxKind[node.kind] ?? "";
  if (ts.isIdentifier(node) || ts.isPrivateIdentifier(node) || ts.isLiteralExpression(node) || ts.isTemplateMiddleOrTemplateTail(node) || ts.isTemplateHead(node)) text += `:${node.text}`;
  if (ts.isPrefixUnaryExpression(node) || ts.isPostfixUnaryExpression(node)) text += `:${node.operator}`;
  if (ts.isVariableDeclarationList(node)) text += `:${node.flags & ts.NodeFlags.BlockScoped}`;
  if (ts.isHeritageClause(node)) text += `:${node.token}`;
  if (ts.isMetaProperty(node)) text += `:${node.keywordToken}`;
  return node.flags & ts.NodeFlags.OptionalChain ? `${text}?` : text;
}

/** Files for which TypeScript's output is another, and how. */
export const OTHERWISE = new Map([
  // TypeScript keeps an import that only names a property of a type.
  ["immer/src/types/types-internal.ts", /ours: .*VariableDeclaration.*\ntheirs: .*DRAFT_STATE/s],
]);

/** Where two shapes part; nothing when they are the same. @param {string} ours @param {string} theirs */
export function difference(ours, theirs) {
  const [a, b] = [shape(ours), shape(theirs)];
  const at = Array.from({ length: Math.max(a.length, b.length) }, (_, at) => at).find((at) => a[at] !== b[at]);
  if (at === undefined) return undefined;
  const around = (/** @type {string[]} */ shape) => shape.slice(Math.max(0, at - 12), at + 14).join(" ");
  return `ours: ${around(a)}\ntheirs: ${around(b)}`;
}

/** Every character of the code is where it was, but for white space and marks. @param {string} source @param {string} code */
export function inPlace(source, code) {
  if (source.length !== code.length) return `${source.length} characters became ${code.length}`;
  for (let at = 0; at < source.length; at++) {
    if (source[at] !== code[at] && !" ;()".includes(code[at] ?? "")) return `at ${at}: ${code.slice(at - 20, at + 20)}`;
  }
  return undefined;
}

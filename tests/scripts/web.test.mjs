// The modules of isolate/web/, which code in the sandbox has in place of the web's globals: in Node, beside Node's own.
// tests/interfaces/code.test.mjs has them in the engine.

import assert from "node:assert/strict";
import { createCipheriv } from "node:crypto";
import { join } from "node:path";
import { test } from "node:test";
import { build } from "esbuild";
import { checkout } from "../worker/support/server.mjs";

/** What the host would give. */
const ENTROPY = Uint8Array.from({ length: 32 }, (_, at) => at * 7 + 1);
/** Sleeps that were asked for, each with what ends it. @type {{ ms: number, end: () => void }[]} */
const sleeps = [];
/** @type {{ url: string, init: any }[]} */
const fetched = [];
/** @type {any} */
let answer;
/** Requests that were aborted, by their numbers. @type {number[]} */
const aborted = [];
Object.assign(globalThis, {
  facts: { entropy: ENTROPY },
  host: {
    sleep: (/** @type {number} */ ms) => new Promise((resolve) => sleeps.push({ ms, end: () => resolve(undefined) })),
    fetch: async (/** @type {string} */ url, /** @type {any} */ init) => {
      fetched.push({ url, init });
      return answer;
    },
    abort: async (/** @type {number} */ id) => void aborted.push(id),
  },
});
const bundle = await build({
  stdin: {
    contents: ["url", "encoding", "clone", "timers", "events", "form", "crypto", "http"].map((name) => `export * from "./${name}.js";`).join("\n"),
    resolveDir: join(checkout, "isolate/web"),
  },
  alias: { "bobbin/url": join(checkout, "isolate/harness/url.js") },
  bundle: true,
  format: "esm",
  target: "esnext",
  write: false,
});
const web = await import(`data:text/javascript;base64,${Buffer.from(bundle.outputFiles[0]?.contents ?? "").toString("base64")}`);

const PARTS = /** @type {const} */ (["href", "origin", "protocol", "username", "password", "host", "hostname", "port", "pathname", "search", "hash"]);

test("URLs are read as the URL Standard says", () => {
  for (const [input, base, href] of [
    ["HTTP://User:Pa%20ss@EXAMPLE.com:80/a/./b/../c d?q='x'#f g", undefined, "http://User:Pa%20ss@example.com/a/c%20d?q=%27x%27#f%20g"],
    ["../up?x", "http://h:8/p/q/r?s#t", "http://h:8/p/up?x"],
    ["//other/x", "https://h/p", "https://other/x"],
    ["?q", "http://h/p/q?r#s", "http://h/p/q?q"],
    ["#h", "mailto:x", "mailto:x#h"],
    ["http://0x7f.1/", undefined, "http://127.0.0.1/"],
    ["http://[1:2:0:0:5:0:0:0]:443/x", undefined, "http://[1:2:0:0:5::]:443/x"],
    ["http://[::ffff:1.2.3.4]", undefined, "http://[::ffff:102:304]/"],
    ["http:\\\\x\\y", undefined, "http://x/y"],
    ["http://münchen.de/ü?ü#ü", undefined, "http://xn--mnchen-3ya.de/%C3%BC?%C3%BC#%C3%BC"],
    ["http://日本語。ＪＰ", undefined, "http://xn--wgv71a119e.jp/"],
    ["http://%65xample%2Ecom", undefined, "http://example.com/"],
    ["file:///C|/x/../..", undefined, "file:///C:/"],
    ["file:d", "file:///C:/a/b", "file:///C:/a/d"],
    ["a:/..//x", undefined, "a:/.//x"],
    ["non-special://x:99/y?z'", undefined, "non-special://x:99/y?z'"],
    ["data:text/plain,a b", undefined, "data:text/plain,a b"],
    ["http://x/a/%2e%2E/\u{1f600}", undefined, "http://x/%F0%9F%98%80"],
    ["  ht\ntp://x\t/y ", undefined, "http://x/y"],
  ]) {
    assert.equal(new web.URL(input, base).href, href, `${input} in ${base}`);
  }
  for (const input of ["", "x", "//x", "http://", "http://a b", "http://256.256.256.256", "http://1.2.3.4.5", "http://[::1", "http://x:65536", "http://a%00b", "http://u@", "1:x"]) {
    assert.throws(() => new web.URL(input), { name: "TypeError", message: `Invalid URL: ${input}` });
    assert.equal(web.URL.canParse(input), false);
    assert.equal(web.URL.parse(input), null);
  }
});

test("whatever a URL is made of and whatever is set, it is as Node has it", () => {
  // What the standard changed between versions of Node is not among these.
  const bits = ["http", "https:", "file:", "a:", "://", "//", "/", "\\", "?", "#", "@", ":", "80", "443", "[", "]", "::1", "1", "0x1", "..", ".", "%2e", "%41", "%", "B", "C|", "/x/é", "?日", "&", "=", "+", "'", "<", "x.y", "~", "\t", "localhost"];
  const bases = [undefined, "http://h/p/q?r#s", "file:///C:/d/e", "https://u:p@h:8/x", "a://h/i/j"];
  const setters = ["protocol", "username", "password", "host", "hostname", "pathname", "search", "hash"];
  let seed = 20261122;
  const below = (/** @type {number} */ limit) => {
    seed = (seed * 1103515245 + 12345) % 2147483648;
    return Math.floor(seed / 65536) % limit;
  };
  const pick = (/** @type {any[]} */ list) => list[below(list.length)];
  const text = (/** @type {number} */ most) => Array.from({ length: 1 + below(most) }, () => pick(bits)).join("");
  let valid = 0;
  for (let round = 0; round < 6000; round++) {
    const [input, base] = [below(3) > 0 ? `http://${text(6)}` : text(8), pick(bases)];
    assert.equal(web.URL.canParse(input, base), URL.canParse(input, base), JSON.stringify([input, base]));
    if (!URL.canParse(input, base)) continue;
    valid++;
    const [ours, theirs] = [new web.URL(input, base), new URL(input, base)];
    const [setter, value] = [pick(setters), text(3)];
    // Some versions lose the host of an unknown scheme.
    if (setter.startsWith("host") && !/^(http|file)/.test(ours.protocol)) continue;
    for (const change of [false, true]) {
      if (change) [ours[setter], /** @type {any} */ (theirs)[setter]] = [value, value];
      for (const part of PARTS) assert.equal(ours[part], theirs[part], JSON.stringify([input, base, change && [setter, value], part]));
      assert.deepEqual([...ours.searchParams], [...theirs.searchParams]);
    }
  }
  assert.ok(valid > 2000, `${valid} were valid`);
});

test("parameters of a URL change with it, and it with them", () => {
  const url = new web.URL("http://x/?a=1&b=%20&a=2+3");
  assert.deepEqual(url.searchParams.getAll("a"), ["1", "2 3"]);
  url.searchParams.set("a", "ü&");
  url.searchParams.append("c", "");
  assert.equal(url.href, "http://x/?a=%C3%BC%26&b=+&c=");
  url.search = "?z=1";
  assert.equal(url.searchParams.get("z"), "1");
  url.searchParams.delete("z");
  assert.equal(url.href, "http://x/");
  const sorted = new web.URLSearchParams([["b", "1"], ["a", "2"], ["b", "0"]]);
  sorted.sort();
  assert.equal(`${sorted}`, "a=2&b=1&b=0");
  assert.equal(`${new web.URLSearchParams({ x: "y z" })}`, "x=y+z");
  assert.deepEqual([sorted.size, sorted.has("b", "0"), sorted.has("b", "9"), sorted.get("none")], [3, true, false, null]);
  assert.throws(() => new web.URLSearchParams([["a"]]), TypeError);
});

test("text is UTF-8, and what is not UTF-8 is replaced or refused", () => {
  const [encoder, decoder] = [new web.TextEncoder(), new web.TextDecoder()];
  for (const text of ["", "ascii", "é日\u{1f600}", "\ud800x\udc00", "x".repeat(10_000)]) {
    assert.deepEqual(encoder.encode(text), new TextEncoder().encode(text));
    assert.equal(decoder.decode(encoder.encode(text)), new TextDecoder().decode(new TextEncoder().encode(text)));
  }
  const wrong = [[0xff], [0xc0, 0x80], [0xe0, 0x80, 0x80], [0xed, 0xa0, 0x80], [0xf0, 0x80, 0x80, 0x80], [0xf4, 0x90, 0x80, 0x80], [0xe2, 0x82], [0xf0, 0x9f, 0x41], [0xe2, 0x82, 0xe2, 0x82, 0xac]];
  for (const bytes of wrong.map((list) => Uint8Array.from(list))) {
    assert.equal(decoder.decode(bytes), new TextDecoder().decode(bytes), String(bytes));
    assert.throws(() => new web.TextDecoder("utf-8", { fatal: true }).decode(bytes), TypeError);
  }
  const parts = new web.TextDecoder();
  const euro = encoder.encode("\ufeff€");
  assert.equal([...euro].map((byte) => parts.decode(Uint8Array.of(byte), { stream: true })).join("") + parts.decode(), "€");
  assert.equal(new web.TextDecoder("utf8", { ignoreBOM: true }).decode(euro), "\ufeff€");
  assert.deepEqual(encoder.encodeInto("a€b", new Uint8Array(3)), { read: 1, written: 1 });
  assert.throws(() => new web.TextDecoder("latin1"), RangeError);
  for (const text of ["", "a", "ab", "abc", "\x00\xff\x80"]) {
    assert.equal(web.btoa(text), btoa(text));
    assert.equal(web.atob(btoa(text)), text);
  }
  assert.equal(web.atob(" YQ = = "), "a");
  for (const text of ["a", "ab=c", "*", "YQ==="]) assert.throws(() => web.atob(text), { name: "InvalidCharacterError" });
  assert.throws(() => web.btoa("€"), { name: "InvalidCharacterError" });
});

test("a clone is deep, keeps what is shared, and is refused where it would lose something", () => {
  const shared = { list: [1, , 3] };
  const value = /** @type {any} */ ({
    shared,
    again: shared,
    map: new Map([[shared, new Set([1n])]]),
    date: new Date(5),
    pattern: /x/gi,
    error: new RangeError("no", { cause: shared }),
    bytes: new Uint8Array([1, 2, 3]).subarray(1),
    boxed: Object(5),
    ["__proto__"]: undefined,
  });
  value.self = value;
  const copy = web.structuredClone(value);
  assert.deepEqual(copy, value);
  assert.equal(copy.self, copy);
  assert.equal(copy.shared, copy.again);
  assert.notEqual(copy.shared, shared);
  assert.equal(1 in copy.shared.list, false);
  assert.ok(copy.map.has(copy.shared));
  assert.ok(copy.error instanceof RangeError && copy.error.cause === copy.shared);
  assert.deepEqual([copy.bytes.byteOffset, copy.bytes.buffer.byteLength], [1, 3]);
  assert.equal(web.structuredClone(undefined), undefined);
  for (const wrong of [() => 1, Symbol("s"), { deep: [() => 1] }, Promise.resolve(), new WeakMap()]) {
    assert.throws(() => web.structuredClone(wrong), { name: "DataCloneError" });
  }
});

/** Lets everything that is ready happen. */
const settle = () => new Promise((resolve) => setImmediate(resolve));

test("one sleep of the host's serves all timers that are due after it, and what is cleared does not run", async () => {
  sleeps.length = 0;
  /** @type {string[]} */
  const ran = [];
  const add = (/** @type {string} */ name, /** @type {number} */ ms) => web.setTimeout((/** @type {string} */ given) => ran.push(given), ms, name);
  add("late", 5000);
  const cleared = add("cleared", 6000);
  for (let count = 0; count < 100; count++) web.clearTimeout(add("never", 5000 + count));
  add("soon", 1);
  web.clearTimeout(cleared);
  web.clearTimeout(undefined);
  assert.deepEqual(sleeps.map(({ ms }) => ms > 1000), [true, false], "one for the first, one for what is due before it");
  await new Promise((resolve) => setTimeout(resolve, 5));
  sleeps[1]?.end();
  await settle();
  assert.deepEqual(ran, ["soon"]);
  sleeps[0]?.end();
  await settle();
  assert.deepEqual(ran, ["soon", "late"]);
});

test("timers are bounded, and an error in one is told and stops no other", async () => {
  sleeps.length = 0;
  assert.throws(() => web.setTimeout(() => {}, 600_001), RangeError);
  assert.throws(() => web.setTimeout("code", 1), TypeError);
  const ids = Array.from({ length: 256 }, () => web.setTimeout(() => {}, 1000));
  assert.throws(() => web.setTimeout(() => {}, 1), /256 timers wait already/);
  ids.forEach(web.clearTimeout);
  sleeps.length = 0;
  const ran = /** @type {unknown[]} */ ([]);
  const { error } = console;
  console.error = (...args) => void ran.push(args);
  web.setTimeout(() => assert.fail("on purpose"), 0);
  web.setTimeout(() => ran.push("next"), 0);
  web.queueMicrotask(() => ran.push("first"));
  for (const sleep of sleeps.splice(0)) sleep.end();
  await settle();
  console.error = error;
  assert.equal(ran[0], "first");
  assert.match(String(ran[1]), /Uncaught:,AssertionError.*on purpose/);
  assert.equal(ran[2], "next");
});

test("an interval rings until it is cleared, also by itself, and leaves out what it missed", async () => {
  sleeps.length = 0;
  /** @type {number[]} */
  const rings = [];
  const id = web.setInterval((/** @type {number} */ given) => {
    rings.push(given);
    if (rings.length === 3) web.clearInterval(id);
  }, 0, 7);
  assert.ok((sleeps[0]?.ms ?? 0) >= 3, "no more often than every 4 ms");
  for (let ring = 0; ring < 5; ring++) {
    await new Promise((resolve) => setTimeout(resolve, 25));
    for (const sleep of sleeps.splice(0)) sleep.end();
    await settle();
  }
  assert.deepEqual([rings, sleeps], [[7, 7, 7], []]);
  assert.throws(() => web.setInterval("code", 5), TypeError);
});

test("listeners are called in order, once or until they are taken away, and what one throws is told", () => {
  const target = new web.EventTarget();
  /** @type {unknown[]} */
  const heard = [];
  const first = (/** @type {any} */ event) => void heard.push(["first", event.type, event.target === target]);
  target.addEventListener("x", first);
  target.addEventListener("x", first);
  target.addEventListener("x", { handleEvent: () => heard.push("object") }, { once: true });
  const { error } = console;
  console.error = (...args) => void heard.push(String(args));
  target.addEventListener("x", () => assert.fail("on purpose"), { once: true });
  target.addEventListener("x", (/** @type {any} */ event) => event.preventDefault());
  assert.equal(target.dispatchEvent(new web.Event("x", { cancelable: true })), false);
  console.error = error;
  assert.deepEqual(heard.splice(0).map((one) => String(one).slice(0, 24)), ["first,x,true", "object", "Uncaught:,AssertionError"]);
  target.removeEventListener("x", first);
  assert.equal(target.dispatchEvent(new web.Event("x")), true);
  assert.deepEqual(heard, []);
  assert.throws(() => target.dispatchEvent({ type: "x" }), TypeError);
});

test("a signal aborts once, with its reason, and others with it", async () => {
  const controller = new web.AbortController();
  const { signal } = controller;
  const both = web.AbortSignal.any([new web.AbortController().signal, signal]);
  /** @type {unknown[]} */
  const heard = [];
  signal.onabort = () => heard.push("replaced");
  signal.onabort = () => heard.push(signal.reason.name, both.aborted);
  signal.throwIfAborted();
  controller.abort();
  controller.abort("again");
  assert.deepEqual(heard, ["AbortError", true]);
  assert.ok(signal.reason instanceof web.DOMException && signal.reason instanceof Error && signal.reason.code === 20);
  assert.equal(both.reason, signal.reason);
  assert.equal(web.AbortSignal.any([web.AbortSignal.abort("why")]).reason, "why");
  assert.throws(() => signal.throwIfAborted(), { name: "AbortError" });
  assert.throws(() => new web.AbortSignal(), TypeError);
  sleeps.length = 0;
  const late = web.AbortSignal.timeout(1);
  await new Promise((resolve) => setTimeout(resolve, 5));
  sleeps[0]?.end();
  await settle();
  assert.deepEqual([late.aborted, late.reason.name], [true, "TimeoutError"]);
});

test("random numbers are ChaCha20 of what the host gave, and no key is used twice", () => {
  // A block's second half is given away, from its end; its first is the next key.
  const expected = [];
  let key = ENTROPY;
  for (let block = 0; block < 3; block++) {
    const stream = createCipheriv("chacha20", key, new Uint8Array(16)).update(new Uint8Array(64));
    key = Uint8Array.from(stream.subarray(0, 32));
    expected.push(...stream.subarray(32).reverse());
  }
  assert.deepEqual([...web.crypto.getRandomValues(new Uint8Array(80))], expected.slice(0, 80));
  assert.match(web.crypto.randomUUID(), /^[0-9a-f]{8}-[0-9a-f]{4}-4[0-9a-f]{3}-[89ab][0-9a-f]{3}-[0-9a-f]{12}$/);
  const view = new Uint16Array(new ArrayBuffer(64), 8, 2);
  web.crypto.getRandomValues(view);
  const around = [...new Uint8Array(view.buffer, 0, 8), ...new Uint8Array(view.buffer, 12)];
  assert.deepEqual(around, new Array(60).fill(0), "nothing beyond the view is written");
  assert.throws(() => web.crypto.getRandomValues(new Float64Array(1)), TypeError);
  assert.throws(() => web.crypto.getRandomValues(new Uint8Array(65_537)), { name: "QuotaExceededError" });
});

test("headers are found whatever their case, and their values hold no line break", () => {
  const headers = new web.Headers([["X-One", " a "], ["x-one", "b"], ["Set-Cookie", "c=1"], ["set-cookie", "d=2"]]);
  assert.equal(headers.get("X-ONE"), "a, b");
  assert.deepEqual(headers.getSetCookie(), ["c=1", "d=2"]);
  assert.deepEqual([...headers], [["set-cookie", "c=1"], ["set-cookie", "d=2"], ["x-one", "a, b"]]);
  headers.delete("x-One");
  assert.equal(headers.has("x-one"), false);
  for (const [name, value] of [["a b", "x"], ["", "x"], ["x", "a\nb: c"], ["x", "a\0"], ["x", "€"]]) {
    assert.throws(() => new web.Headers([[name, value]]), TypeError, JSON.stringify([name, value]));
  }
  assert.deepEqual([...new web.Headers(new web.Headers({ a: "1" }))], [["a", "1"]]);
});

test("requests and answers carry text and bytes, once", async () => {
  const request = new web.Request("http://x/y", { method: "post", body: new web.URLSearchParams({ a: "b c" }) });
  assert.deepEqual([request.method, request.url, request.headers.get("content-type")], ["POST", "http://x/y", "application/x-www-form-urlencoded;charset=UTF-8"]);
  const copy = request.clone();
  assert.equal(await request.text(), "a=b+c");
  assert.equal(request.bodyUsed, true);
  await assert.rejects(request.text(), /read already/);
  assert.throws(() => request.clone(), /read already/);
  assert.deepEqual(await copy.bytes(), new TextEncoder().encode("a=b+c"));
  assert.equal(new web.Request(new web.Request("http://x/", { headers: { a: "1" } }), { method: "PUT" }).headers.get("a"), "1");
  const form = new web.FormData();
  form.append('a"', "1\n2");
  form.append("b", "----bobbin");
  const sent = new web.Request("http://x", { method: "POST", body: form });
  assert.equal(sent.headers.get("content-type"), "multipart/form-data; boundary=----bobbin-");
  assert.equal(await sent.text(), '------bobbin-\r\nContent-Disposition: form-data; name="a%22"\r\n\r\n1\r\n2\r\n------bobbin-\r\nContent-Disposition: form-data; name="b"\r\n\r\n----bobbin\r\n------bobbin---\r\n');
  assert.throws(() => form.set("c", new Uint8Array()), /no files/);
  const json = web.Response.json({ a: 1 }, { status: 201 });
  assert.deepEqual([json.status, json.ok, json.headers.get("content-type"), await json.json()], [201, true, "application/json", { a: 1 }]);
  const bytes = new web.Response(Uint8Array.of(1, 2, 3).subarray(1));
  assert.deepEqual(new Uint8Array(await bytes.arrayBuffer()), Uint8Array.of(2, 3));
  assert.equal(web.Response.redirect("http://x").headers.get("location"), "http://x/");
  assert.throws(() => new web.Response("x", { status: 204 }), TypeError);
  assert.throws(() => new web.Response("x", { status: 99 }), RangeError);
  assert.throws(() => new web.Response({ a: 1 }), /Response\.json/);
  assert.throws(() => new web.Request("http://x", { body: "x" }), /GET has no body/);
  assert.throws(() => new web.Request("http://u:p@x/@"), /user and password/);
  assert.throws(() => new web.Request("x"), /Invalid URL/);
});

test("fetch hands the host one URL, one method, pairs of headers and a body", async () => {
  answer = { status: 404, headers: [["Content-Type", "text/x"]], body: new TextEncoder().encode("gone") };
  const response = await web.fetch(new web.URL("http://x/y?z#h"), { method: "PUT", headers: { A: "1" }, body: "é" });
  assert.deepEqual(fetched, [{ url: "http://x/y?z", init: { method: "PUT", headers: [["a", "1"], ["content-type", "text/plain;charset=UTF-8"]], body: "é" } }]);
  assert.deepEqual([response.status, response.ok, response.url, response.headers.get("content-type"), await response.text()], [404, false, "http://x/y?z", "text/x", "gone"]);
});

test("a request whose signal aborts is ended at the host, and one that has ended is left alone", async () => {
  fetched.length = aborted.length = 0;
  answer = new Promise(() => {});
  const controller = new web.AbortController();
  const waiting = web.fetch("http://x/", { signal: controller.signal });
  await settle();
  controller.abort(new RangeError("enough"));
  await assert.rejects(waiting, { name: "RangeError", message: "enough" });
  const [{ init } = assert.fail("nothing was sent")] = fetched;
  assert.deepEqual(aborted, [init.id]);
  await assert.rejects(web.fetch("http://x/", { signal: controller.signal }), RangeError);
  assert.equal(fetched.length, 1, "nothing is sent any more");
  answer = { status: 200, headers: [], body: new Uint8Array() };
  const later = new web.AbortController();
  await web.fetch(new web.Request("http://x/", { signal: later.signal }));
  later.abort();
  assert.equal(fetched.length, 2);
  assert.equal(aborted.length, 1);
  await assert.rejects(web.fetch("http://x/", { signal: {} }), /must be an AbortSignal/);
  assert.equal(new web.Request("http://x/").signal.aborted, false);
});

test("headers from outside are as they came, and can be passed on; nobody sets one like that", async () => {
  const request = web.received({ url: "http://x/a", method: "GET", headers: [["x-name", "日本"]], body: new Uint8Array() });
  assert.equal(request.headers.get("X-Name"), "日本");
  assert.equal(new web.Headers(request.headers).get("x-name"), "日本");
  assert.equal(new web.Request(request, { method: "POST" }).headers.get("x-name"), "日本");
  assert.throws(() => request.headers.set("x-name", "日本"), TypeError);
  assert.throws(() => new web.Response("", { headers: { "x-name": "日本" } }), TypeError);
  answer = { status: 200, headers: [["x-name", "日本"]], body: new Uint8Array() };
  assert.equal((await web.fetch("http://x/", { headers: request.headers })).headers.get("x-name"), "日本");
});

test("an endpoint's request is made of what the host says, and its answer becomes what the host reads", async () => {
  const request = web.received({ url: "http://x/a", method: "POST", headers: { a: "1" }, body: new TextEncoder().encode("{}") });
  assert.ok(request instanceof web.Request);
  assert.deepEqual([await request.json(), request.headers.get("a")], [{}, "1"]);
  assert.equal(await web.received({ url: "http://x/a", method: "GET", headers: {}, body: new Uint8Array() }).text(), "");
  assert.deepEqual(web.answered(new web.Response("x", { status: 201, headers: { b: "2" } })), {
    response: { status: 201, headers: [["b", "2"], ["content-type", "text/plain;charset=UTF-8"]], body: "x" },
  });
  assert.deepEqual(web.answered({ a: 1 }), { value: { a: 1 } });
});

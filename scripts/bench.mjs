// `npm run bench`: measures the cost of the runtime on top of the platform. Prints a table and writes bench/latest.json.
//
//   npm run bench -- --quick            fewer samples
//   npm run bench -- --rows accept,sql  only these rows

import { cpus, loadavg } from "node:os";
import { performance } from "node:perf_hooks";
import { parseArgs } from "node:util";
import { BenchModel } from "../bench/model.mjs";
import { progress } from "../bench/measure.mjs";
import { rows } from "../bench/rows.mjs";
import { startFloor, startProduct } from "../bench/sides.mjs";
import { heading, line, save } from "../bench/table.mjs";
import { Complaint, main, seconds } from "./run.mjs";

await main(async () => {
  // What is measured is what is deployed.
  process.env.BOBBIN_BUILD ??= "release";
  const { values: flags } = parseArgs({
    options: {
      quick: { type: "boolean", default: false },
      rows: { type: "string", default: Object.keys(rows).join(",") },
    },
  });
  const wanted = flags.rows.split(",").map((name) => name.trim());
  const unknown = wanted.filter((name) => !(name in rows));
  if (unknown.length > 0) {
    throw new Complaint(`There is no row ${unknown.join(", ")}; the rows are ${Object.keys(rows).join(", ")}.`);
  }
  const started = performance.now();
  const model = new BenchModel();
  await model.listen();
  const product = await startProduct(model.url);
  const floor = await startFloor(model.url);
  const bench = {
    product: product.side,
    floor: floor.side,
    model,
    times: (/** @type {number} */ samples) => (flags.quick ? Math.max(2, Math.ceil(samples / 8)) : samples),
    restartProduct: product.restart,
  };
  /** @type {import("../bench/measure.mjs").Result[]} */
  const results = [];
  try {
    console.log(heading());
    for (const name of wanted) {
      const found = (await rows[name]?.(bench)) ?? [];
      progress("");
      if (process.stdout.isTTY) process.stdout.write("\r\x1b[K");
      for (const result of found) console.log(line(result));
      results.push(...found);
    }
  } finally {
    await product.end();
    await floor.end();
    await model.close();
  }
  const [cpu] = cpus();
  const machine = { processor: cpu?.model ?? "unknown", cores: cpus().length, load: loadavg()[0] ?? 0 };
  if (wanted.length === Object.keys(rows).length) save({ quick: flags.quick, machine, results });
  console.log(`\n${machine.cores} cores, load ${machine.load.toFixed(1)}; ${seconds(started)} s. Medians of interleaved runs.`);
});

// Python by the description of the API: the code of docs/api-client.md, a client that is generated, and a program that tries what
// the description allows and holds every answer against it.

import assert from "node:assert/strict";
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { after } from "node:test";
import { fileURLToPath } from "node:url";
import { say, use } from "../../worker/support/model.mjs";
import { checkout } from "../../worker/support/server.mjs";
import { suite } from "../../worker/support/suite.mjs";
import { missing, python } from "../support/python.mjs";

const KEY = "key-of-the-tests";
const folder = fileURLToPath(new URL(".", import.meta.url));
const scratch = mkdtempSync(join(tmpdir(), "bobbin-python-"));
after(() => rmSync(scratch, { recursive: true }));
const bobbin = suite({ key: KEY, vars: { BOBBIN_API_KEYS: `${KEY}=admin`, BOBBIN_TOKEN_SECRET: "secret-of-the-tokens-0123456789abcdef" } });
bobbin.tool("calculate", ({ args }) => String(6 * (args.expression === "6*7" ? 7 : 0)));
bobbin.agent("helper", ({ messages }) => (messages.at(-1)?.role === "tool" ? say(`It is ${messages.at(-1)?.content}.`) : use({ name: "calculate", args: { expression: "6*7" } })), {
  tools: ["calculate"],
});

if (missing) console.log(`skipped: ${missing}`);
else {
  bobbin.test("python: the code of the documents works as pasted", async () => {
    const page = readFileSync(join(checkout, "docs/api-client.md"), "utf8");
    const code = /```python\n(.*?)```/s.exec(page)?.[1];
    assert.ok(code, "the page has code");
    const program = join(scratch, "page.py");
    writeFileSync(program, code.replace("http://127.0.0.1:8787", bobbin.server.base).replace("YOUR_KEY", KEY));
    assert.match(await python(folder, program), /^It is 42\.$/m);
  });

  bobbin.test(
    "python: a generated client is whole, and asks",
    async () => {
      await bobbin.client.thread("helper");
      const out = join(scratch, "client");
      const told = await python(folder, "-m", "openapi_python_client", "generate", "--path", join(checkout, "schemas/openapi.json"), "--output-path", out, "--meta", "none");
      assert.doesNotMatch(told, /will not be generated/, "every route is there");
      const program = join(scratch, "generated.py");
      writeFileSync(
        program,
        `import importlib, pkgutil, sys
sys.path.insert(0, ${JSON.stringify(scratch)})
import client
names = [module.name for module in pkgutil.walk_packages(client.__path__, "client.")]
for name in names:
    importlib.import_module(name)
from client.api.threads import list_threads
found = list_threads.sync_detailed(client=client.AuthenticatedClient(base_url=${JSON.stringify(bobbin.server.base)}, token=${JSON.stringify(KEY)}))
assert found.status_code == 200, found
import json
from io import BytesIO
from client.api.files import complete_upload, put_chunk, start_upload
from client.api.chats import create_response, get_response
from client.models import CreateResponseBody, NewUpload
from client.types import File
asked = client.AuthenticatedClient(base_url=${JSON.stringify(bobbin.server.base)}, token=${JSON.stringify(KEY)})
thread = found.parsed.threads[0].id
upload = start_upload.sync(thread, client=asked, body=NewUpload.from_dict({"path": "parts.txt", "size": 5}))
put_chunk.sync(thread, upload.upload_id, 0, client=asked, body=File(payload=BytesIO(b"hello")))
assert complete_upload.sync_detailed(thread, upload.upload_id, client=asked).status_code == 200
read = asked.get_httpx_client().get(f"/api/threads/{thread}/fs/parts.txt")
assert read.content == b"hello", read
answer = create_response.sync_detailed(client=asked, body=CreateResponseBody.from_dict({"model": "helper", "input": "6*7"}))
again = get_response.sync_detailed(json.loads(answer.content)["id"], client=asked)
assert again.status_code == 200 and b"It is 42." in again.content, again
print(len(names), "modules,", len(found.parsed.threads), "threads")
`,
      );
      const [, modules, threads] = /^(\d+) modules, (\d+) threads$/m.exec(await python(folder, program)) ?? [];
      assert.ok(Number(modules) > 100 && Number(threads) >= 1, `${modules} modules, ${threads} threads`);
    },
    300_000,
  );

  bobbin.test(
    "schemathesis: every answer is as it is described, and none is an error of the server",
    async () => {
      const thread = await bobbin.client.thread("helper");
      await thread.ask("6*7");
      const config = join(scratch, "schemathesis.toml");
      writeFileSync(config, readFileSync(join(folder, "schemathesis.toml"), "utf8").replace("THREAD", thread.id));
      const checks = "not_a_server_error,status_code_conformance,content_type_conformance,response_schema_conformance";
      const args = ["-m", "schemathesis.cli", "--config-file", config, "run", `${bobbin.server.base}/openapi.json`];
      const limits = ["--max-examples", "10", "--phases", "examples,coverage,fuzzing", "--seed", "1", "--no-color"];
      const told = await python(folder, ...args, "--header", `authorization: Bearer ${KEY}`, "--checks", checks, ...limits);
      const cases = /(\d+) generated/.exec(told)?.[1];
      assert.ok(Number(cases) > 1_000, told.slice(-2_000));
    },
    600_000,
  );
}

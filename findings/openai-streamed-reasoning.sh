#!/usr/bin/env bash
# openai 7.59.0 (npm) and openai 3.57.0 (PyPI): the stream helpers of the two official clients, given the same chat completion.
# One would guess: both join the pieces of a field that they do not know, such as `reasoning_content` of DeepSeek, or both keep none.
# Seen: Python joins the pieces, JavaScript keeps the last one and drops those before it. `content` is whole in both.
# So a page that reads the reasoning from JavaScript's final message shows its last few letters, without any error.
set -euo pipefail
dir=$(mktemp -d)
server=
trap '[ -z "$server" ] || kill "$server"; rm -rf "$dir"' EXIT
cd "$dir"
npm init -y >/dev/null
npm install --silent --no-audit --no-fund openai@7.59.0
python3 -m venv venv
venv/bin/pip install --quiet openai==3.57.0

cat >server.mjs <<'JS'
import { createServer } from "node:http";
import { writeFileSync } from "node:fs";
const piece = (delta, finish_reason = null) =>
  `data: ${JSON.stringify({ id: "c1", object: "chat.completion.chunk", created: 1, model: "m", choices: [{ index: 0, delta, finish_reason }] })}\n\n`;
const body = [
  piece({ role: "assistant", reasoning_content: "First, " }), piece({ reasoning_content: "second." }),
  piece({ content: "Do" }), piece({ content: "ne." }), piece({}, "stop"), "data: [DONE]\n\n",
].join("");
const server = createServer((_, response) => response.writeHead(200, { "content-type": "text/event-stream" }).end(body));
server.listen(0, "127.0.0.1", () => writeFileSync("port", String(server.address().port)));
JS
node server.mjs &
server=$!
for _ in $(seq 50); do [ -s port ] && break; sleep 0.1; done
base="http://127.0.0.1:$(cat port)/v1"

cat >client.mjs <<'JS'
import OpenAI from "openai";
const client = new OpenAI({ baseURL: process.argv[2], apiKey: "none" });
const stream = client.chat.completions.stream({ model: "m", messages: [{ role: "user", content: "?" }] });
const { content, reasoning_content } = (await stream.finalChatCompletion()).choices[0].message;
console.log(`javascript: ${content} | ${reasoning_content}`);
JS
cat >client.py <<'PY'
import sys
from openai import OpenAI
client = OpenAI(base_url=sys.argv[1], api_key="none")
with client.chat.completions.stream(model="m", messages=[{"role": "user", "content": "?"}]) as stream:
    message = stream.get_final_completion().choices[0].message
print(f"python: {message.content} | {message.model_extra['reasoning_content']}")
PY
seen=$(node client.mjs "$base"; venv/bin/python client.py "$base")
echo "$seen"
[ "$seen" = $'javascript: Done. | second.\npython: Done. | First, second.' ] || { echo "changed"; exit 1; }

#!/usr/bin/env bash
# mcp 2.3.0 (PyPI), a server of protocol 2026-07-28: a tool does its work, and then asks the user by `ctx.elicit`.
# One would guess: HTTP 400 with JSON-RPC -32600 (invalid request) means that the request was refused, and the tool did not run.
# Seen: the tool has run; the 400 with the call's own id comes after it, as a stateless request has no way to ask. A tool that raises
# `MCPError(-32601)` (method not found) is HTTP 404 in the same way. A client that tries such a call again in another way makes it twice.
set -euo pipefail
dir=$(mktemp -d)
server=
trap '[ -z "$server" ] || kill "$server"; rm -rf "$dir"' EXIT
cd "$dir"
python3 -m venv venv
venv/bin/pip install --quiet --disable-pip-version-check mcp==2.3.0
cat >server.py <<'PY'
import asyncio, socket
import uvicorn
from mcp.server.mcpserver import Context, MCPServer
from mcp.shared.exceptions import MCPError
from pydantic import BaseModel
app = MCPServer("shop")
class Which(BaseModel):
    which: str
@app.tool()
async def pay_then_ask(ctx: Context) -> str:
    print("pay_then_ask ran", file=open("ran", "a"))
    return str(await ctx.elicit("Which account?", Which))
@app.tool()
async def pay_and_fail() -> str:
    print("pay_and_fail ran", file=open("ran", "a"))
    raise MCPError(code=-32601, message="The account is closed.")
listening = socket.socket()
listening.bind(("127.0.0.1", 0))
print(listening.getsockname()[1], file=open("port", "w"), flush=True)
asyncio.run(uvicorn.Server(uvicorn.Config(app.streamable_http_app(), log_level="error")).serve(sockets=[listening]))
PY
venv/bin/python server.py & server=$!
for _ in $(seq 100); do [ -s port ] && curl -s -o /dev/null "http://127.0.0.1:$(cat port)/" && break; sleep 0.1; done
meta='"_meta":{"io.modelcontextprotocol/protocolVersion":"2026-07-28","io.modelcontextprotocol/clientInfo":{"name":"c","version":"1"},"io.modelcontextprotocol/clientCapabilities":{"elicitation":{"form":{}}}}'
for tool in pay_then_ask pay_and_fail; do
  curl -s -w ' %{http_code}\n' "http://127.0.0.1:$(cat port)/mcp" -H 'content-type: application/json' -H 'accept: application/json, text/event-stream' \
    -H 'mcp-protocol-version: 2026-07-28' -H 'mcp-method: tools/call' -H "mcp-name: $tool" \
    -d "{\"jsonrpc\":\"2.0\",\"id\":\"call-1\",\"method\":\"tools/call\",\"params\":{\"name\":\"$tool\",\"arguments\":{},$meta}}"
done | tee answers
cat ran
[ "$(grep -c '"id":"call-1"' answers)" = 2 ] && grep -q '"code":-32600.* 400$' answers && grep -q '"code":-32601.* 404$' answers &&
  [ "$(cat ran)" = $'pay_then_ask ran\npay_and_fail ran' ] || { echo "changed"; exit 1; }

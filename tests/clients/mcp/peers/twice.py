# A server by the official package `mcp`, whose tools have done something when they ask a person on a stream, or fail with an error of the
# protocol. `python peers/twice.py` serves it on a free port, and prints its address.

import asyncio
import socket

import uvicorn
from mcp.server.mcpserver import Context, MCPServer
from mcp.shared.exceptions import MCPError
from pydantic import BaseModel
from starlette.requests import Request
from starlette.responses import JSONResponse, Response

mcp = MCPServer("twice")
calls: list[str] = []


class Which(BaseModel):
    which: str


@mcp.tool()
async def pay_then_ask(amount: int, ctx: Context) -> str:
    """Pays, and asks then what for."""
    calls.append("pay_then_ask")
    answer = await ctx.elicit(f"What are the {amount} for?", Which)
    return str(answer)


@mcp.tool()
async def pay_and_fail(code: int) -> str:
    """Pays, and fails with this code."""
    calls.append("pay_and_fail")
    raise MCPError(code=code, message="The account is closed.")


@mcp.custom_route("/calls", methods=["GET"])
async def books(_: Request) -> Response:
    return JSONResponse({"calls": [{"tool": name} for name in calls]})


if __name__ == "__main__":
    listening = socket.socket()
    listening.bind(("127.0.0.1", 0))
    print(f"http://127.0.0.1:{listening.getsockname()[1]}/mcp", flush=True)
    server = uvicorn.Server(uvicorn.Config(mcp.streamable_http_app(), log_level="warning"))
    asyncio.run(server.serve(sockets=[listening]))

# A server by the package fastmcp, as people write them in Python: plain tools, one that asks, one that is slow.
# `python peers/fast.py` serves it on a free port, and prints its address.

import asyncio
import socket

import uvicorn
from fastmcp import Context, FastMCP
from fastmcp.utilities.types import Image
from mcp_types import ElicitRequest, ElicitRequestFormParams, InputRequiredResult
from starlette.responses import JSONResponse

mcp = FastMCP("fast-peer", version="4.1.6")
calls: list[str] = []


@mcp.tool(annotations={"readOnlyHint": True})
def echo(text: str) -> str:
    """Says what it is told."""
    calls.append("echo")
    return f"You said: {text}"


@mcp.tool
def add(a: int, b: int) -> dict:
    """Adds two numbers."""
    calls.append("add")
    return {"sum": a + b}


@mcp.tool
async def pay(ms: int) -> str:
    """Pays once. It must not be called twice."""
    calls.append("pay")
    await asyncio.sleep(ms / 1000)
    return "paid"


@mcp.tool
def fail() -> str:
    """Fails, as tools do."""
    calls.append("fail")
    raise ValueError("There is no paper left.")


@mcp.tool
def picture() -> Image:
    """A picture."""
    calls.append("picture")
    return Image(data=bytes([137, 80, 78, 71, 13, 10, 26, 10]), format="png")


WHO = {"type": "object", "properties": {"name": {"type": "string"}}, "required": ["name"]}


@mcp.tool(output_schema=None)
async def ask(ctx: Context) -> str | InputRequiredResult:
    """Asks a person by a form."""
    calls.append("ask")
    answer = (ctx.input_responses or {}).get("who")
    if answer is None:
        form = ElicitRequest(params=ElicitRequestFormParams(message="Who are you?", requested_schema=WHO))
        return InputRequiredResult(input_requests={"who": form}, request_state="the state of Python")
    return f"{answer.action}: {answer.content} with {ctx.request_state}"


@mcp.custom_route("/calls", methods=["GET"])
async def books(_) -> JSONResponse:
    return JSONResponse({"calls": [{"tool": name} for name in calls]})


if __name__ == "__main__":
    listening = socket.socket()
    listening.bind(("127.0.0.1", 0))
    print(f"http://127.0.0.1:{listening.getsockname()[1]}/mcp", flush=True)
    server = uvicorn.Server(uvicorn.Config(mcp.http_app(path="/mcp"), log_level="warning"))
    asyncio.run(server.serve(sockets=[listening]))

"""What OpenAI's Agents SDK for Python does with Bobbin. Arguments: address, key."""

import asyncio
import sys

from agents import Agent, HostedMCPTool, OpenAIProvider, RunConfig, Runner, set_tracing_disabled

BASE, KEY = sys.argv[1:3]
set_tracing_disabled(True)
config = RunConfig(model_provider=OpenAIProvider(base_url=f"{BASE}/v1", api_key=KEY, use_responses=True))
label = {"type": "mcp", "server_label": "bobbin", "server_url": f"{BASE}/mcp", "require_approval": "always"}


async def main() -> None:
    for approve, told in ((True, "paid"), (False, "denied")):
        tool = HostedMCPTool(tool_config=label, on_approval_request=lambda request: {"approve": approve})
        payer = Agent(name="Payer", model="payer", tools=[tool])
        result = await Runner.run(payer, "pay", run_config=config)
        assert told in result.final_output.lower(), result.final_output
    # Without a function that decides, the run ends and is gone on with.
    payer = Agent(name="Payer", model="payer", tools=[HostedMCPTool(tool_config=label)])
    result = await Runner.run(payer, "pay", run_config=config)
    assert len(result.interruptions) == 1, result
    state = result.to_state()
    state.approve(result.interruptions[0])
    result = await Runner.run(payer, state, run_config=config)
    assert "paid" in result.final_output, result.final_output
    # A conversation is named by its id.
    echo = Agent(name="Echo", model="echo")
    for number, text in enumerate(("one", "two"), 1):
        result = await Runner.run(echo, text, run_config=config, conversation_id="talk-of-agents")
        assert result.final_output == f"{number}: {text}", result.final_output
    print("all is well")


asyncio.run(main())

"""What Pydantic AI does with Bobbin's responses. It does not know requests for approvals. Arguments: address, key."""

import asyncio
import sys

from pydantic_ai import Agent
from pydantic_ai.models.openai import OpenAIResponsesModel
from pydantic_ai.providers.openai import OpenAIProvider

BASE, KEY = sys.argv[1:3]
provider = OpenAIProvider(base_url=f"{BASE}/v1", api_key=KEY)


async def main() -> None:
    payer = Agent(OpenAIResponsesModel("payer", provider=provider))
    asked = await payer.run("pay")
    assert "A person has to approve of the call of `pay`: /api/threads/" in asked.output, asked.output
    async with payer.run_stream("pay") as stream:
        assert "A person has to approve" in await stream.get_output()
    looker = Agent(OpenAIResponsesModel("looker", provider=provider))
    first = await looker.run("look")
    assert first.output.endswith("It is found."), first.output
    second = await looker.run("look again", message_history=first.all_messages())
    assert second.output.endswith("It is found."), second.output
    print("all is well")


asyncio.run(main())

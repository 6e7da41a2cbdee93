"""Holds every event that Bobbin sends against the models of AG-UI. Arguments: address, key."""

import json
import sys
import urllib.request

from ag_ui.core import Event, Interrupt, Message, RunAgentInput, UserMessage
from pydantic import TypeAdapter

BASE, KEY = sys.argv[1:3]
HEADERS = {"authorization": f"Bearer {KEY}", "content-type": "application/json"}
EVENT = TypeAdapter(Event)
MESSAGE = TypeAdapter(Message)


def known(model, sent: dict) -> None:
    """Every field is one of the model's: the models take others without a word."""
    extra = getattr(model, "model_extra", None)
    assert not extra, (extra, sent)


def ask(path: str, body: str | None = None) -> str:
    request = urllib.request.Request(f"{BASE}/api/agents/{path}", body and body.encode(), HEADERS)
    with urllib.request.urlopen(request) as answer:
        return answer.read().decode()


def run(agent: str) -> list[str]:
    given = RunAgentInput(
        thread_id=f"py-{agent}",
        run_id="run-1",
        messages=[UserMessage(id="u1", content="go")],
        tools=[],
        context=[{"description": "Page", "value": "cart"}],
        forwarded_props={"a": 1},
        state={},
    )
    text = ask(f"{agent}/ag-ui?reasoning=1", given.model_dump_json(by_alias=True))
    kinds = []
    for line in text.splitlines():
        if line.startswith("data: "):
            sent = json.loads(line.removeprefix("data: "))
            event = EVENT.validate_python(sent)
            known(event, sent)
            kinds.append(sent["type"])
    history = json.loads(ask(f"{agent}/ag-ui?threadId=py-{agent}&reasoning=1"))
    for sent in history["messages"]:
        known(MESSAGE.validate_python(sent), sent)
    for sent in (history["interrupts"] or {}).get("pending", []):
        known(Interrupt.model_validate(sent), sent)
    return kinds


WANTED = {
    "echo": "TEXT_MESSAGE_CONTENT",
    "looker": "TOOL_CALL_RESULT",
    "payer": "MESSAGES_SNAPSHOT",
    "finder": "TOOL_CALL_ARGS",
    "thinker": "REASONING_MESSAGE_CONTENT",
    "breaking": "MESSAGES_SNAPSHOT",
}
for name, wanted in WANTED.items():
    kinds = run(name)
    assert kinds[0] == "RUN_STARTED" and kinds[-1] == "RUN_FINISHED", (name, kinds)
    assert wanted in kinds, (name, kinds)
print("all is well")

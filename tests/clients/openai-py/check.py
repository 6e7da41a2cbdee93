"""What OpenAI's package for Python sees of Bobbin, and the types of Open Responses of every event. Arguments: address, key."""

import json
import sys
import urllib.request

import openai
import openresponses_types.types as types

BASE, KEY = sys.argv[1:3]
client = openai.OpenAI(base_url=f"{BASE}/v1", api_key=KEY)

# Bobbin's own calls are no item of Open Responses, which knows none that a server makes.
OURS = {"mcp_call", "mcp_approval_request"}
EVENTS = {
    "response.created": types.ResponseCreatedStreamingEvent,
    "response.in_progress": types.ResponseInProgressStreamingEvent,
    "response.completed": types.ResponseCompletedStreamingEvent,
    "response.failed": types.ResponseFailedStreamingEvent,
    "response.incomplete": types.ResponseIncompleteStreamingEvent,
    "response.output_item.added": types.ResponseOutputItemAddedStreamingEvent,
    "response.output_item.done": types.ResponseOutputItemDoneStreamingEvent,
    "response.content_part.added": types.ResponseContentPartAddedStreamingEvent,
    "response.content_part.done": types.ResponseContentPartDoneStreamingEvent,
    "response.output_text.delta": types.ResponseOutputTextDeltaStreamingEvent,
    "response.output_text.done": types.ResponseOutputTextDoneStreamingEvent,
    "response.function_call_arguments.delta": types.ResponseFunctionCallArgumentsDeltaStreamingEvent,
    "response.function_call_arguments.done": types.ResponseFunctionCallArgumentsDoneStreamingEvent,
    "response.reasoning_summary_part.added": types.ResponseReasoningSummaryPartAddedStreamingEvent,
    "response.reasoning_summary_part.done": types.ResponseReasoningSummaryPartDoneStreamingEvent,
    "response.reasoning_summary_text.delta": types.ResponseReasoningSummaryDeltaStreamingEvent,
    "response.reasoning_summary_text.done": types.ResponseReasoningSummaryDoneStreamingEvent,
}


def valid(event: dict) -> None:
    """Holds an event, or a response, against the types."""
    if event.get("item", {}).get("type") in OURS:
        return
    if "response" in event:
        event["response"]["output"] = [item for item in event["response"]["output"] if item["type"] not in OURS]
    EVENTS[event["type"]].model_validate(event)


def raises(kind: type, work) -> Exception:
    try:
        work()
    except kind as error:
        return error
    raise AssertionError(f"it raises no {kind.__name__}")


def completions() -> None:
    assert "echo" in [model.id for model in client.models.list()]
    hello = [{"role": "user", "content": "hello"}]
    whole = client.chat.completions.create(model="echo", messages=hello)
    assert whole.choices[0].message.content == "You wrote: hello", whole
    assert whole.usage.total_tokens > 0, whole
    chunks = list(client.chat.completions.create(model="echo", messages=hello, stream=True, stream_options={"include_usage": True}))
    text = "".join(chunk.choices[0].delta.content or "" for chunk in chunks if chunk.choices)
    assert text == "You wrote: hello", chunks
    assert chunks[-1].usage.total_tokens > 0, chunks
    error = raises(openai.NotFoundError, lambda: client.chat.completions.create(model="nobody", messages=hello))
    assert error.code == "model_not_found", error
    stranger = openai.OpenAI(base_url=f"{BASE}/v1", api_key="wrong")
    raises(openai.AuthenticationError, lambda: stranger.models.list())
    raises(openai.BadRequestError, lambda: client.chat.completions.create(model="echo", messages=hello, n=2))


def responses() -> None:
    first = client.responses.create(model="echo", input="one")
    assert first.output_text == "You wrote: one", first
    second = client.responses.create(model="echo", input="two", previous_response_id=first.id)
    assert second.output_text == "You wrote: two", second
    with client.responses.stream(model="looker", input="look") as stream:
        kinds = [event.type for event in stream]
        final = stream.get_final_response()
    assert kinds[-1] == "response.completed" and final.output_text.endswith("It is found."), kinds
    background = client.responses.create(model="echo", input="later", background=True)
    while background.status in ("queued", "in_progress"):
        background = client.responses.retrieve(background.id)
    assert background.output_text == "You wrote: later", background
    other = client.responses.create(model="echo", input="other", previous_response_id=first.id)
    assert other.output_text == "You wrote: other" and other.conversation.id != first.conversation.id, other


def open_responses() -> None:
    """Every event as it is sent."""
    for model in ("echo", "looker", "finder", "thinker"):
        body = {"model": model, "input": "go", "stream": True, "reasoning": {"summary": "auto"}}
        headers = {"authorization": f"Bearer {KEY}", "content-type": "application/json"}
        request = urllib.request.Request(f"{BASE}/v1/responses", json.dumps(body).encode(), headers)
        seen = []
        with urllib.request.urlopen(request) as answer:
            for line in answer.read().decode().splitlines():
                if line.startswith("data: "):
                    event = json.loads(line.removeprefix("data: "))
                    seen.append(event["type"])
                    valid(event)
        assert seen[0] == "response.created" and seen[-1] == "response.completed", seen
        wanted = {"finder": "response.function_call_arguments.done", "thinker": "response.reasoning_summary_text.done"}
        assert wanted.get(model, "response.output_text.done") in seen, seen


completions()
responses()
open_responses()
print("all is well")

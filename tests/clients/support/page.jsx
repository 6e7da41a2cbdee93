// A chat as people build it with `useChat`. What a person would click is on `window.chat`, what they would see on
// `window.shown`.

import { useChat } from "@ai-sdk/react";
import { DefaultChatTransport, lastAssistantMessageIsCompleteWithApprovalResponses, lastAssistantMessageIsCompleteWithToolCalls } from "ai";
import { useEffect } from "react";
import { createRoot } from "react-dom/client";

const options = new URLSearchParams(location.hash.slice(1));
const api = options.get("api");
const query = options.get("query") ?? "";
const id = options.get("id");
const headers = { authorization: `Bearer ${options.get("key")}` };

const automatic = {
  approvals: lastAssistantMessageIsCompleteWithApprovalResponses,
  tools: lastAssistantMessageIsCompleteWithToolCalls,
}[options.get("automatic")];

function Chat({ initial }) {
  const chat = useChat({
    id,
    messages: initial,
    resume: true,
    transport: new DefaultChatTransport({ api: api + query, headers }),
    sendAutomaticallyWhen: automatic,
    onError: (error) => window.errors.push(error.message),
    onToolCall: ({ toolCall }) => void window.called.push(toolCall.toolName),
  });
  window.chat = chat;
  const { messages, status } = chat;
  useEffect(() => {
    window.shown = { messages: JSON.parse(JSON.stringify(messages)), status };
    const text = messages.at(-1)?.parts?.filter(({ type }) => type === "text").map(({ text }) => text).join("") ?? "";
    if (window.grown.at(-1) !== text) window.grown.push(text);
  }, [messages, status]);
  return <pre>{JSON.stringify(messages, null, 2)}</pre>;
}

window.errors = [];
window.called = [];
window.grown = [];

/** A page that is read while the server is down is read again. */
async function read() {
  for (;;) {
    const answer = await fetch(`${api}/${encodeURIComponent(id)}${query}`, { headers }).catch(() => undefined);
    if (answer?.ok) return answer.json();
    await new Promise((resolve) => setTimeout(resolve, 200));
  }
}

const history = await read();
createRoot(document.getElementById("root")).render(<Chat initial={history.messages} />);

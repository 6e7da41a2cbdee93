// A conversation as pages show it with the client of TanStack AI. What a person would click is on `window.chat`, what they would see
// on `window.shown`.

import { ChatClient, fetchServerSentEvents } from "@tanstack/ai-client";

const options = new URLSearchParams(location.hash.slice(1));
const [api, id] = [options.get("api"), options.get("id")];
const headers = { authorization: `Bearer ${options.get("key")}` };
const url = `${api}?${new URLSearchParams({ threadId: id, parts: "1", revise: "1" })}`;

window.errors = [];
window.grown = [];

/** Where the server is down, the client shows nothing and tries no more: a page asks first. */
async function answers() {
  for (;;) {
    const answer = await fetch(url, { headers }).catch(() => undefined);
    if (answer?.ok) return;
    await new Promise((resolve) => setTimeout(resolve, 200));
  }
}

await answers();
const client = new ChatClient({
  threadId: id,
  persistence: true,
  // Longer than a server takes to start again.
  connection: fetchServerSentEvents(url, { headers, reconnect: { maxAttempts: 60 } }),
  onMessagesChange: (messages) => {
    const parts = messages.at(-1)?.parts ?? [];
    const text = parts.map((part) => (part.type === "text" ? part.content : "")).join("");
    if (window.grown.at(-1) !== text) window.grown.push(text);
    document.querySelector("#root").textContent = JSON.stringify(messages, null, 2);
  },
  onError: (error) => window.errors.push(error.message),
});
client.attach();
window.chat = client;
window.shown = () => ({
  messages: JSON.parse(JSON.stringify(client.getMessages())),
  status: client.getStatus(),
  loading: client.getIsLoading(),
  interrupts: client.getInterrupts().map(({ id }) => id),
});

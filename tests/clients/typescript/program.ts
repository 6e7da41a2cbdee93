// What people write with the client; only its types are looked at.

import { createClient } from "bobbin-client";
import type { View } from "bobbin-client";
import { useThread } from "bobbin-client/react";

const client = createClient({ url: "https://bobbin.example.com", token: async () => "token" });

export async function talk(): Promise<string> {
  const { data } = await client.GET("/api/threads", { params: { query: { limit: 20 } } });
  const first: string | undefined = data?.threads[0]?.id;
  const thread = client.thread(first ?? { key: "chat-1", agent: "helper" });
  const { message, outcome } = await thread.ask("Hello", { idempotencyKey: "one" });
  for await (const { frame, id } of thread.frames()) {
    if (frame.type === "message_chunk") return frame.chunk + (id ?? "");
    if (frame.type === "messages_cut") return frame.after;
  }
  // @ts-expect-error: there is no such route
  await client.GET("/api/nothing");
  // @ts-expect-error: a limit is a number
  await client.GET("/api/threads", { params: { query: { limit: "many" } } });
  return outcome + (message?.content ?? "");
}

export function Chat(): string {
  const { messages, partial, pending, send, approve, regenerate } = useThread(client, { key: "chat-1", agent: "helper" });
  void send("Hello").then(() => regenerate());
  for (const wait of pending) void approve(wait);
  const view: Pick<View, "messages" | "partial"> = { messages, partial };
  return (view.partial?.text ?? "") + view.messages.length;
}

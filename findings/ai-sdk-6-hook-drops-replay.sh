#!/usr/bin/env bash
# @ai-sdk/react 3.0.327 with ai 6.0.326: a reply breaks off, and the page resumes a stream that begins again from the start.
# One would guess: `useChat({ transport })` shows what `new Chat({ transport })` shows, as both are given the same transport.
# Seen: the Chat replaces the text, the hook appends the whole reply to its beginning. The hook wraps the transport in an object
# that has its two methods only, so that `resumeStreamIsReplay`, true by default, is lost on the way.
# With `useChat({ chat: new Chat({ transport }) })` the hook replaces the text, too.
set -euo pipefail
dir=$(mktemp -d)
trap 'rm -rf "$dir"' EXIT
cd "$dir"
npm init -y >/dev/null
npm install --silent --no-audit --no-fund ai@6.0.326 @ai-sdk/react@3.0.327 react@19.3.1 react-dom@19.3.1 zod@4.1.12

cat >resume.mjs <<'JS'
import { Chat, useChat } from "@ai-sdk/react";
import { DefaultChatTransport } from "ai";
import { createElement } from "react";
import { renderToString } from "react-dom/server";

/** A server whose first response breaks off in the middle of the reply. */
function transport() {
  let requests = 0;
  const fetch = async () => {
    const first = ++requests === 1;
    const chunks = [{ type: "start", messageId: "m" }, { type: "start-step" }, { type: "text-start", id: "t" }, { type: "text-delta", id: "t", delta: "one " }];
    if (!first) chunks.push({ type: "text-delta", id: "t", delta: "two" }, { type: "text-end", id: "t" }, { type: "finish-step" }, { type: "finish" });
    async function* body() {
      for (const chunk of chunks) yield `data: ${JSON.stringify(chunk)}\n\n`;
      if (first) throw new TypeError("network error");
    }
    const stream = ReadableStream.from(body()).pipeThrough(new TextEncoderStream());
    return new Response(stream, { headers: { "content-type": "text/event-stream" } });
  };
  return new DefaultChatTransport({ api: "http://server.example/chat", fetch });
}

/** What a hook returns, without a browser. @param {object} options */
function hook(options) {
  let chat;
  renderToString(createElement(() => ((chat = useChat(options)), null)));
  return chat;
}

async function shown(chat, messages) {
  await chat.sendMessage({ text: "count" });
  await chat.resumeStream();
  return messages().at(-1).parts.filter(({ type }) => type === "text").map(({ text }) => text).join("|");
}
const chat = new Chat({ transport: transport() });
console.log("chat:", await shown(chat, () => chat.messages));
let last = [];
const plain = hook({ transport: transport(), onFinish: ({ messages }) => (last = messages) });
console.log("hook:", await shown(plain, () => last));
const owned = new Chat({ transport: transport() });
console.log("hook of a chat:", await shown(hook({ chat: owned }), () => owned.messages));
JS
seen=$(node resume.mjs)
echo "$seen"
[ "$seen" = $'chat: one two\nhook: one |one two\nhook of a chat: one two' ] || { echo "changed"; exit 1; }

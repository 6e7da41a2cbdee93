// A thread as people show it with `useThread`. What they would click is on `window.thread`, what they would see on
// `window.shown`.

import { createClient } from "bobbin-client";
import { useThread } from "bobbin-client/react";
import { useEffect } from "react";
import { createRoot } from "react-dom/client";

const options = new URLSearchParams(location.hash.slice(1));
const client = createClient({ url: options.get("url"), token: () => options.get("key") });
const name = { key: options.get("id"), agent: options.get("agent") };

function Thread() {
  const thread = useThread(client, name);
  window.thread = thread;
  const { messages, partial, state, pending, connected, error } = thread;
  useEffect(() => {
    window.shown = { messages, partial, state, pending, connected, error: error?.message };
    if (partial && window.grown.at(-1) !== partial.text) window.grown.push(partial.text);
  });
  return <pre>{JSON.stringify(messages, null, 2)}</pre>;
}

window.grown = [];
createRoot(document.getElementById("root")).render(<Thread />);

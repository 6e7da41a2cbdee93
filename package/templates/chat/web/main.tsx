// A conversation with the assistant. The thread on the server is authoritative: the page reads it when it opens, and
// resumes a reply in progress, even after a restart of the server.

import { useChat } from "@ai-sdk/react";
import { DefaultChatTransport, type UIMessage } from "ai";
import { type FormEvent, useEffect, useState } from "react";
import { createRoot } from "react-dom/client";

const API = "/api/agents/assistant/chat";

/** The token of a deployment. A development server needs none. */
const headers = (): Record<string, string> => {
  const token = sessionStorage.getItem("token");
  return token === null ? {} : { authorization: `Bearer ${token}` };
};

/** Each tab keeps its conversation in the URL. */
const id = location.hash.slice(1) || crypto.randomUUID();
location.hash = id;

function Chat({ before }: { before: UIMessage[] }) {
  const { messages, sendMessage, status, error, stop } = useChat({
    id,
    messages: before,
    resume: true,
    transport: new DefaultChatTransport({ api: API, headers }),
  });
  const [text, setText] = useState("");
  const busy = status === "submitted" || status === "streaming";
  const submit = (event: FormEvent) => {
    event.preventDefault();
    if (busy) {
      // The hook only stops reading. The route stops the run on the server.
      void stop();
      void fetch(`${API}/${id}/stop`, { method: "POST", headers: headers() });
    } else if (text.trim() !== "") {
      void sendMessage({ text });
      setText("");
    }
  };
  return (
    <>
      <ol aria-live="polite">
        {messages.map(({ id, role, parts }) => (
          <li key={id} className={role}>
            {parts.map((part, at) =>
              part.type === "text" ? <span key={at}>{part.text}</span> : part.type.startsWith("tool-") || part.type === "dynamic-tool" ? <div key={at} className="call">used {"toolName" in part ? part.toolName : part.type.slice(5)}</div> : null,
            )}
          </li>
        ))}
      </ol>
      {error && <p role="alert">{error.message}</p>}
      <form onSubmit={submit}>
        <input aria-label="Message" autoFocus placeholder="Write a message" value={text} onChange={(event) => setText(event.target.value)} />
        <button>{busy ? "Stop" : "Send"}</button>
      </form>
    </>
  );
}

function App() {
  const [before, setBefore] = useState<UIMessage[]>();
  const [closed, setClosed] = useState(false);
  const read = async () => {
    const response = await fetch(`${API}/${id}`, { headers: headers() });
    setClosed(response.status === 401);
    // 404: there is no message yet.
    if (response.ok || response.status === 404) setBefore(response.ok ? (await response.json()).messages : []);
  };
  useEffect(() => void read(), []);
  if (before) return <Chat before={before} />;
  if (!closed) return null;
  const enter = (event: FormEvent<HTMLFormElement>) => {
    event.preventDefault();
    sessionStorage.setItem("token", String(new FormData(event.currentTarget).get("token")));
    void read();
  };
  return (
    <form onSubmit={enter}>
      <input name="token" type="password" aria-label="Token" placeholder="A key or token of this deployment" />
      <button>Enter</button>
    </form>
  );
}

createRoot(document.getElementById("root")!).render(<App />);

// Reads server-sent events for MCP: yields the data of each event.

/** @param {AsyncIterable<Uint8Array>} chunks @returns {AsyncGenerator<string>} */
export async function* eventsOf(chunks) {
  const decoder = new TextDecoder();
  /** @type {string[]} */
  let data = [];
  let rest = "";
  let afterReturn = false;
  for await (const chunk of chunks) {
    let text = decoder.decode(chunk, { stream: true });
    // Skip the second half of a CRLF whose first half ended the previous chunk.
    if (afterReturn && text.startsWith("\n")) text = text.slice(1);
    afterReturn = text.endsWith("\r");
    const lines = text.split(/\r\n|\n|\r/);
    lines[0] = rest + lines[0];
    rest = lines.pop() ?? "";
    for (const line of lines) {
      if (line === "" && data.length > 0) yield data.join("\n");
      if (line === "") data = [];
      else if (line.startsWith("data:")) data.push(line.slice(5).replace(/^ /, ""));
    }
  }
}

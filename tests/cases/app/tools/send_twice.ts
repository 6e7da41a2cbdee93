import type { ToolHandler } from "bobbin";

/** Not safe without a key: what was sent before a crash is sent again. */
const sendTwice: ToolHandler<{ key?: string }> = async (state, { key }) => {
  for (const to of ["Ann", "Bea"]) {
    const headers = { "content-type": "application/json", ...(key && { "idempotency-key": `${key}/${to}` }) };
    await fetch("https://mail.example.com/send", { method: "POST", headers, body: JSON.stringify({ to }) });
    await state.setValue("last", to);
  }
  return "Sent.";
};
export default sendTwice;

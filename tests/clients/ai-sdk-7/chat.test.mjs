// `useChat` of major 7, in a browser.

import { fileURLToPath } from "node:url";
import { chats } from "../support/chats.mjs";

const client = { major: 7, folder: fileURLToPath(new URL(".", import.meta.url)), features: "reset-step,replay" };
chats(client, false);

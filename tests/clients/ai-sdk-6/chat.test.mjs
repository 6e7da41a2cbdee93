// `useChat` of major 6, in a browser.

import { fileURLToPath } from "node:url";
import { chats } from "../support/chats.mjs";

const client = { major: 6, folder: fileURLToPath(new URL(".", import.meta.url)), features: "" };
chats(client, false);

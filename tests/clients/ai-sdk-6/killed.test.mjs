// The same, while the server is killed.

import { fileURLToPath } from "node:url";
import { chats } from "../support/chats.mjs";

const client = { major: 6, folder: fileURLToPath(new URL(".", import.meta.url)), features: "" };
chats(client, true);

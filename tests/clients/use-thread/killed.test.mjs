// The same, while the server is killed.

import { fileURLToPath } from "node:url";
import { threads } from "../support/threads.mjs";

threads(fileURLToPath(new URL(".", import.meta.url)), true);

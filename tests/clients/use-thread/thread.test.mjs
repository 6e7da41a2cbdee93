// `useThread` in a page.

import { fileURLToPath } from "node:url";
import { threads } from "../support/threads.mjs";

threads(fileURLToPath(new URL(".", import.meta.url)), false);

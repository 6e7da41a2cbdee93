// The same, while the server is killed.

import { completions } from "./completions.mjs";

completions(true);

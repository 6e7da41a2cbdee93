// Chat completions with the package `openai`.

import { completions } from "./completions.mjs";

completions(false);

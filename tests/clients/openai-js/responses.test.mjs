// Responses with the package `openai`.

import { responses } from "./responses.mjs";

responses(false);

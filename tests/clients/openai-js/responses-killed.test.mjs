// The same, while the server is killed.

import { responses } from "./responses.mjs";

responses(true);

// The same, while the server is killed.

import { steps } from "./steps.mjs";

steps(true);

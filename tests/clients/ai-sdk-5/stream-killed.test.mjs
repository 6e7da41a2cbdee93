// The same, while the server is killed.

import * as ai from "ai";
import { streams } from "../support/stream.mjs";

streams(5, ai, true);

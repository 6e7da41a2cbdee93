// The same, while the server is killed.

import * as ai from "ai";
import { streams } from "../support/stream.mjs";

streams(7, ai, true);

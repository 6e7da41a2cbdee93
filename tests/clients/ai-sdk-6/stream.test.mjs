// The stream, read with the packages of major 6.

import * as ai from "ai";
import { streams } from "../support/stream.mjs";

streams(6, ai);

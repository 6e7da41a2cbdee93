// The stream, read with the packages of major 5.

import * as ai from "ai";
import { streams } from "../support/stream.mjs";

streams(5, ai);

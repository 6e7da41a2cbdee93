// The stream, read with the packages of major 7.

import * as ai from "ai";
import { streams } from "../support/stream.mjs";

streams(7, ai);

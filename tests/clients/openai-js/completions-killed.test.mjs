// The same, while the server is killed.

import * as openai from "openai";
import { completions } from "../support/openai-completions.mjs";

completions(7, openai, true);

// Chat completions with major 6 of the package `openai`.

import * as openai from "openai";
import { completions } from "../support/openai-completions.mjs";

completions(6, openai);

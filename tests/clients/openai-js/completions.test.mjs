// Chat completions with major 7 of the package `openai`.

import * as openai from "openai";
import { completions } from "../support/openai-completions.mjs";

completions(7, openai);

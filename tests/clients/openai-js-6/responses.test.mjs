// Responses with major 6 of the package `openai`.

import * as openai from "openai";
import { responses } from "../support/openai-responses.mjs";

responses(6, openai);

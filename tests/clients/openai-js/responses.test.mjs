// Responses with major 7 of the package `openai`.

import * as openai from "openai";
import { responses } from "../support/openai-responses.mjs";

responses(7, openai);

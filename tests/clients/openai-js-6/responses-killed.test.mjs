// The same, while the server is killed.

import * as openai from "openai";
import { responses } from "../support/openai-responses.mjs";

responses(6, openai, true);

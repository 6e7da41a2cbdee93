// `ChatClient` of TanStack AI, in a browser.

import { pages } from "./pages.mjs";

pages(false);

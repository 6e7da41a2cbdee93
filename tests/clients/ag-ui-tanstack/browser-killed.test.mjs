// The same, while the server is killed.

import { pages } from "./pages.mjs";

pages(true);

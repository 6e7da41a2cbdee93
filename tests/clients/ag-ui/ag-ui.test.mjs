// Runs with the package `@ag-ui/client`.

import { agUi } from "./ag-ui.mjs";

agUi(false);

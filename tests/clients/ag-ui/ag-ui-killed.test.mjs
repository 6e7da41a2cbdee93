// The same, while the server is killed.

import { agUi } from "./ag-ui.mjs";

agUi(true);

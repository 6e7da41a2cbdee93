// The servers that the tests of most commands share.

import { servers } from "./servers.mjs";

export const two = servers();

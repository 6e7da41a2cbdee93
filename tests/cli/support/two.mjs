// The servers that most commands' tests share.

import { servers } from "./servers.mjs";

export const two = servers();

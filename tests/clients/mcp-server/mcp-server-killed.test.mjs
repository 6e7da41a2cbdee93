// The same, while the server is killed.

import { mcpServer } from "./mcp-server.mjs";

mcpServer(true);

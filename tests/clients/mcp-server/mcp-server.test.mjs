// Agents as tools, with MCP's official clients of both lines.

import { mcpServer } from "./mcp-server.mjs";

mcpServer(false);

// The commands that do not stream. Each runs against two servers, which all share, because starting a server takes most
// of the time.

import "./commands/threads.mjs";
import "./commands/decide.mjs";
import "./commands/transfer.mjs";
import "./commands/nodes.mjs";
import "./commands/doctor.mjs";

// All commands but those that follow, each at two servers, which they share: most of the time is that of their starts.

import "./commands/threads.mjs";
import "./commands/decide.mjs";
import "./commands/transfer.mjs";
import "./commands/nodes.mjs";
import "./commands/doctor.mjs";

// Loaded into wrangler's process: ends it when the script that started it is gone, however that ended.

process.on("disconnect", () => process.kill(-process.pid, "SIGKILL"));
// The channel alone must not keep the process alive.
process.channel?.unref();

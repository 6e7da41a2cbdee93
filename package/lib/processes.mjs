// Stops processes together with their children.

/** Whether the platform has process groups, so that one signal reaches a process and its children. */
export const GROUPS = process.platform !== "win32";

/** @param {number | undefined} leader @param {NodeJS.Signals} signal */
export function signalGroup(leader, signal) {
  try {
    if (leader !== undefined) process.kill(GROUPS ? -leader : leader, signal);
  } catch {
    // The group has already exited.
  }
}

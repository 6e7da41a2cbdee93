// Ending processes together with what they have started.

/** Whether a process can lead a group of its own, which one signal reaches whole. */
export const GROUPS = process.platform !== "win32";

/** @param {number | undefined} leader @param {NodeJS.Signals} signal */
export function signalGroup(leader, signal) {
  try {
    if (leader !== undefined) process.kill(GROUPS ? -leader : leader, signal);
  } catch {
    // Nothing of it is left.
  }
}

// Problems that the person at the terminal can solve, and the program's exit codes.

/** Exit codes of `bobbin`. */
export const EXIT = {
  /** The command failed: a definition is invalid, a test failed, or the server rejected a request. */
  failed: 1,
  /** The command could not begin: an unknown flag, no server, or no project. */
  usage: 2,
  /** A run failed. */
  runFailed: 3,
  /** A run is waiting for a person. */
  runParked: 4,
  /** A run was stopped. */
  runStopped: 5,
};

/** An error that is printed without a stack. */
export class Complaint extends Error {
  /** @param {string} message @param {number} [exit] */
  constructor(message, exit = EXIT.failed) {
    super(message);
    this.exit = exit;
  }
}

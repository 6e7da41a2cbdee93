// A problem the person at the terminal can act on, and what the program ends with.

/** What `bobbin` exits with. */
export const EXIT = {
  /** What was asked for went wrong: a definition is invalid, a test failed, a server refused. */
  failed: 1,
  /** It could not begin: an unknown flag, no server, no project. */
  usage: 2,
  /** A run failed. */
  runFailed: 3,
  /** A run waits for somebody. */
  runParked: 4,
  /** A run was stopped. */
  runStopped: 5,
};

/** Printed as it stands, without a stack. */
export class Complaint extends Error {
  /** @param {string} message @param {number} [exit] */
  constructor(message, exit = EXIT.failed) {
    super(message);
    this.exit = exit;
  }
}

// Free and used ports of this machine.

import { connect, createServer } from "node:net";
import { setTimeout as sleep } from "node:timers/promises";
import { Complaint } from "../lib/complaint.mjs";

/**
 * @param {number} port  0 for any
 * @param {string} host
 * @param {string} [flag]  the flag that sets the port
 * @returns {Promise<number>} a port that is free
 */
export async function claimPort(port, host, flag = "--port") {
  if (port === 0) return freePort(host);
  // A server that was just killed may still hold the port.
  for (let waited = 0; await isTaken(port, host); waited += 100) {
    if (waited > 3000) throw new Complaint(`Port ${port} is in use. Choose another with \`${flag} N\`.`);
    await sleep(100);
  }
  return port;
}

/** @param {string} host @returns {Promise<number>} */
function freePort(host) {
  return new Promise((resolve, reject) => {
    const server = createServer();
    server.once("error", reject);
    server.listen(0, host, () => {
      const { port } = /** @type {import("node:net").AddressInfo} */ (server.address());
      server.close(() => resolve(port));
    });
  });
}

/** @param {number} port @param {string} host @returns {Promise<boolean>} */
function isTaken(port, host) {
  return new Promise((resolve) => {
    // A listener on all interfaces also listens on the loopback address.
    const probe = connect(port, host === "0.0.0.0" ? "127.0.0.1" : host === "::" ? "::1" : host);
    probe.once("error", () => resolve(false));
    probe.once("connect", () => {
      probe.destroy();
      resolve(true);
    });
  });
}

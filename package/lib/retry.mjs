// Retries a request if the server was busy or did not respond. Use it only for reads and idempotent requests.

import { setTimeout as sleep } from "node:timers/promises";
import { BobbinError } from "bobbin/client";

const ATTEMPTS = 6;

/**
 * @template T
 * @param {() => Promise<T>} ask
 * @returns {Promise<T>}
 */
export async function retry(ask) {
  for (let attempt = 1; ; attempt++) {
    try {
      return await ask();
    } catch (error) {
      const failed = error instanceof BobbinError ? error : undefined;
      if (!failed?.again || attempt === ATTEMPTS) throw error;
      await sleep(failed.retryAfter ?? 250 * 2 ** attempt);
    }
  }
}

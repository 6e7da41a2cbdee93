// What goes wrong: an answer that refuses, or none at all.

/** A refusal of the server: its `code` is stable (docs/errors.md), `message` and `hint` are for people. */
export class BobbinError extends Error {
  override readonly name = "BobbinError";

  constructor(
    readonly code: string,
    message: string,
    /** Of the answer; 0 where there was none. */
    readonly status: number,
    readonly hint?: string,
    /** The field that is to blame. */
    readonly field?: string,
    /** Milliseconds after which the same may be tried again, where the server says so. */
    readonly retryAfter?: number,
  ) {
    super(message);
  }

  /** Whether the same request may be sent again: the server was busy, or did not answer. */
  get again(): boolean {
    return this.status === 0 || this.status === 408 || this.status === 429 || this.status >= 500;
  }
}

/** The error that an answer is. */
export async function refusal(response: Response): Promise<BobbinError> {
  const text = await response.text().catch(() => "");
  let error: { code?: string; message?: string; hint?: string; field?: string } = {};
  try {
    error = JSON.parse(text)?.error ?? {};
  } catch {
    // Something between us and the server has answered.
  }
  const seconds = Number(response.headers.get("retry-after") ?? NaN);
  return new BobbinError(
    error.code ?? `http_${response.status}`,
    error.message ?? (text.slice(0, 200) || `The server answered ${response.status}.`),
    response.status,
    error.hint,
    error.field,
    Number.isFinite(seconds) ? seconds * 1000 : undefined,
  );
}

/** What stands for a request that no answer came to. */
export function unanswered(cause: unknown): BobbinError {
  const error = new BobbinError("unreachable", "The server did not answer.", 0);
  error.cause = cause;
  return error;
}

/** Waits, unless the signal ends it. */
export function pause(ms: number, signal?: AbortSignal): Promise<void> {
  return new Promise((resolve, reject) => {
    if (signal?.aborted) return reject(signal.reason);
    const timer = setTimeout(done, ms);
    function done() {
      signal?.removeEventListener("abort", ended);
      resolve();
    }
    function ended() {
      clearTimeout(timer);
      reject(signal?.reason);
    }
    signal?.addEventListener("abort", ended, { once: true });
  });
}

/** How long to wait before an attempt, the second one being 1: half a second, doubled each time, 8 s at most, a third of it by chance. */
export function delay(attempt: number): number {
  return Math.min(8000, 250 * 2 ** attempt) * (0.67 + Math.random() * 0.33);
}

// Errors: an error response, or no response at all.

/** An error of the server. Its `code` is stable (docs/errors.md); `message` and `hint` are for people. */
export class BobbinError extends Error {
  override readonly name = "BobbinError";

  constructor(
    readonly code: string,
    message: string,
    /** The status of the response; 0 if there was none. */
    readonly status: number,
    readonly hint?: string,
    /** The field that caused it. */
    readonly field?: string,
    /** Milliseconds after which to retry, if the server says so. */
    readonly retryAfter?: number,
  ) {
    super(message);
  }

  /** Whether the request may be retried: the server was busy, or did not respond. */
  get again(): boolean {
    return this.status === 0 || this.status === 408 || this.status === 429 || this.status >= 500;
  }
}

/** Builds the error of a response. */
export async function refusal(response: Response): Promise<BobbinError> {
  const text = await response.text().catch(() => "");
  let error: { code?: string; message?: string; hint?: string; field?: string } = {};
  try {
    error = JSON.parse(text)?.error ?? {};
  } catch {
    // The response may come from a proxy.
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

/** The error of a request without a response. */
export function unanswered(cause: unknown): BobbinError {
  const error = new BobbinError("unreachable", "The server did not answer.", 0);
  error.cause = cause;
  return error;
}

/** Waits, or rejects when the signal aborts. */
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

/** The delay before a retry, the first being 1: half a second, doubled each time, at most 8 s, a third of it random. */
export function delay(attempt: number): number {
  return Math.min(8000, 250 * 2 ** attempt) * (0.67 + Math.random() * 0.33);
}

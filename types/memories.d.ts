// Requests and responses of memories (docs/memory.md). They are part of the module in bobbin.d.ts.

declare module "bobbin" {
  /** A passage of a memory that a reply cites (docs/memory.md): in `metadata.citations` of its message. */
  interface Citation {
    /** The label without brackets: `m1`. */
    label: string;
    memory: string;
    document: string;
    title: string | null;
    url: string | null;
    /** Character positions in the document. */
    start: number;
    end: number;
  }

  /** A document of a memory, as returned by `…/memory/:name/documents`. */
  interface MemoryDocument {
    id: string;
    key: string;
    /** How the document was added: through HTTP, by a model's tool, or automatically. */
    source: "api" | "note" | "file" | "message";
    title: string | null;
    url: string | null;
    mimeType: string | null;
    tags: string[];
    metadata: JsonObject | null;
    /** `partial`: text search works, vectors are missing, and `error` gives the reason. */
    state: "queued" | "indexing" | "partial" | "ready" | "failed";
    /** `null` while it is queued. */
    chunks: number | null;
    done: number;
    error: string | null;
    /** Microseconds since 1970. */
    createdAt: number;
    updatedAt: number;
  }

  /** The body of `POST …/memory/:name/documents`. */
  interface NewMemoryDocument {
    key?: string;
    title?: string;
    /** Excludes `path`. */
    text?: string;
    /** A file of the thread. */
    path?: string;
    mimeType?: string;
    url?: string;
    tags?: string[];
    metadata?: JsonObject;
  }

  /** The body of `POST …/memory/:name/search`. */
  interface MemoryQuery {
    query: string;
    topK?: number;
    tags?: string[];
    mode?: "hybrid" | "text" | "vector";
  }

  /** The response to a search. */
  interface MemoryFound {
    results: {
      score: number;
      text: string;
      document: string;
      /** The index of the first chunk in the document. */
      chunk: number;
      start: number;
      end: number;
      title: string | null;
      url: string | null;
    }[];
    /** Whether some or all vectors were missing. */
    degraded: boolean;
    error?: string;
  }

  /** The response of `GET …/memory/:name`. */
  interface MemoryInfo {
    name: string;
    description: string;
    scope: "thread" | "owner" | "instance";
    documents: number;
    chunks: number;
    bytes: number;
    embedding: string | null;
    state: "ready" | "partial" | "indexing" | "reindexing";
  }

  /** The response of `GET /api/memory/:name/logs`, newest first: requests for vectors outside of runs. */
  interface MemoryLogs {
    logs: MemoryLog[];
    /** The cursor of the next page, if there is one. */
    cursor: string | null;
  }

  /** A request for vectors. */
  interface MemoryLog {
    id: string;
    type: "llm_request";
    purpose: "embedding";
    memory: string;
    /** The number of texts in the request. */
    texts: number;
    /** The name of the definition, and of the model at its provider. */
    model_name: string;
    model: string;
    /** The model that the provider reports, if it does. */
    response_model?: string;
    attempt: number;
    retry_of_attempt: number | null;
    retry_source: string;
    status: "completed" | "failed";
    usage_reported?: boolean;
    input_tokens?: number;
    /** Dollars. `null` if the model has no price. */
    cost_total?: number | null;
    error_type?: string;
    error?: string;
    status_code?: number;
    latency_ms: number | null;
    /** Microseconds since 1970. */
    created_at: number;
    ended_at: number;
  }

  /** Arguments of the tools of memories and of the scratchpad, by name. */
  interface MemoryToolArguments {
    memory_search: { query: string; top_k?: number; tags?: string[]; memory?: string };
    memory_save: { content: string; title?: string; tags?: string[]; memory?: string };
    memory_update: { id: string; content: string; memory?: string };
    memory_delete: { id: string; memory?: string };
    scratchpad_read: Record<string, never>;
    scratchpad_write: { items: string[] };
    scratchpad_clear: Record<string, never>;
  }
}

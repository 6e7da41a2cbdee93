// What memories take and answer (docs/memory.md). The module goes on in bobbin.d.ts.

declare module "bobbin" {
  /** A place of a memory that a reply cites (docs/memory.md): in `metadata.citations` of its message. */
  interface Citation {
    /** The mark, without its brackets: `m1`. */
    label: string;
    memory: string;
    document: string;
    title: string | null;
    url: string | null;
    /** Characters of the document. */
    start: number;
    end: number;
  }

  /** A document of a memory: what `…/memory/:name/documents` answers with. */
  interface MemoryDocument {
    id: string;
    key: string;
    /** By HTTP, by a model's tool, or by itself. */
    source: "api" | "note" | "file" | "message";
    title: string | null;
    url: string | null;
    mimeType: string | null;
    tags: string[];
    metadata: JsonObject | null;
    /** `partial`: its words are found, vectors are missing, and `error` says why. */
    state: "queued" | "indexing" | "partial" | "ready" | "failed";
    /** `null` while it is queued. */
    chunks: number | null;
    done: number;
    error: string | null;
    /** Microseconds since 1970. */
    createdAt: number;
    updatedAt: number;
  }

  /** What `POST …/memory/:name/documents` takes. */
  interface NewMemoryDocument {
    key?: string;
    title?: string;
    /** This, or `path`. */
    text?: string;
    /** A file of the thread. */
    path?: string;
    mimeType?: string;
    url?: string;
    tags?: string[];
    metadata?: JsonObject;
  }

  /** What `POST …/memory/:name/search` takes. */
  interface MemoryQuery {
    query: string;
    topK?: number;
    tags?: string[];
    mode?: "hybrid" | "text" | "vector";
  }

  /** What it answers. */
  interface MemoryFound {
    results: {
      score: number;
      text: string;
      document: string;
      /** Place of the first chunk in the document. */
      chunk: number;
      start: number;
      end: number;
      title: string | null;
      url: string | null;
    }[];
    /** Whether vectors, or some of them, were missing. */
    degraded: boolean;
    error?: string;
  }

  /** What `GET …/memory/:name` answers. */
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

  /** What `GET /api/memory/:name/logs` answers, newest first: requests for vectors that no run has made. */
  interface MemoryLogs {
    logs: MemoryLog[];
    /** Of the next page, if there is one. */
    cursor: string | null;
  }

  /** A request for vectors. */
  interface MemoryLog {
    id: string;
    type: "llm_request";
    purpose: "embedding";
    memory: string;
    /** How many texts it was about. */
    texts: number;
    /** Name of the definition, and of the model at its provider. */
    model_name: string;
    model: string;
    /** The model that gave them, where the provider tells. */
    response_model?: string;
    attempt: number;
    retry_of_attempt: number | null;
    retry_source: string;
    status: "completed" | "failed";
    usage_reported?: boolean;
    input_tokens?: number;
    /** Dollars; `null` where the model has no price. */
    cost_total?: number | null;
    error_type?: string;
    error?: string;
    status_code?: number;
    latency_ms: number | null;
    /** Microseconds since 1970. */
    created_at: number;
    ended_at: number;
  }

  /** Arguments of the tools of memories and of the scratchpad, by their names. */
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

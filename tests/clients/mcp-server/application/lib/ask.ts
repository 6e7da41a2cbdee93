// What a tool is told of its call, and how it asks people.

type Answer = { action: "accept" | "decline"; content?: Record<string, unknown> };
export type Call = { answers: Record<string, Answer> };

/** The result that asks for texts, by name. */
export const ask = (name: string, message: string, ...fields: string[]) => asks({ [name]: { message, schema: form(Object.fromEntries(fields.map((field) => [field, { type: "string" }]))) } });

export const form = (properties: Record<string, object>) => ({ type: "object", properties, required: Object.keys(properties) });

export const asks = (error_data: Record<string, object>) => ({ status: "error", error: "This needs an answer.", error_code: "needs_input", error_data });

// Texts for decisions, which must not be able to look like other texts.

/** Shows invisible characters, and those that change the direction of text, as code points. @param {unknown} text */
export const plain = (text) =>
  String(text).replace(/[\u0000-\u0008\u000b-\u001f\u007f-\u009f\u200b\u202a-\u202e\u2060-\u2069\ufeff]/g, (sign) => `⟨U+${sign.codePointAt(0)?.toString(16).toUpperCase().padStart(4, "0")}⟩`);

/** A value, as text or as JSON. @param {unknown} value */
export const written = (value) => plain(typeof value === "string" ? value : (JSON.stringify(value, null, 2) ?? "not set"));

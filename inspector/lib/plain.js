// Texts that somebody decides about: they must not look like other ones.

/** Characters that cannot be seen, or turn a text around, are shown as what they are. @param {unknown} text */
export const plain = (text) =>
  String(text).replace(/[\u0000-\u0008\u000b-\u001f\u007f-\u009f\u200b\u202a-\u202e\u2060-\u2069\ufeff]/g, (sign) => `⟨U+${sign.codePointAt(0)?.toString(16).toUpperCase().padStart(4, "0")}⟩`);

/** A value, as text or as JSON. @param {unknown} value */
export const written = (value) => plain(typeof value === "string" ? value : (JSON.stringify(value, null, 2) ?? "not set"));

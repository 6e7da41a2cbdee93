// FormData with text fields only, for code in the sandbox. Files are not supported.

export class FormData {
  /** @type {[name: string, value: string][]} */
  #fields = [];

  /** @param {string} name @param {unknown} value */
  append(name, value) {
    this.#fields.push([String(name), field(value)]);
  }

  /** @param {string} name @param {unknown} value */
  set(name, value) {
    const text = field(value);
    this.delete(name);
    this.#fields.push([String(name), text]);
  }

  /** @param {string} name */
  delete(name) {
    this.#fields = this.#fields.filter(([known]) => known !== String(name));
  }

  /** @param {string} name @returns {string | null} */
  get(name) {
    return this.getAll(name)[0] ?? null;
  }

  /** @param {string} name @returns {string[]} */
  getAll(name) {
    return this.#fields.filter(([known]) => known === String(name)).map(([, value]) => value);
  }

  /** @param {string} name */
  has(name) {
    return this.#fields.some(([known]) => known === String(name));
  }

  /** @param {(value: string, name: string, form: FormData) => void} callback @param {unknown} [self] */
  forEach(callback, self) {
    for (const [name, value] of this.#fields) callback.call(self, value, name, this);
  }

  entries() {
    return this.#fields.map(([name, value]) => /** @type {[string, string]} */ ([name, value])).values();
  }

  keys() {
    return this.#fields.map(([name]) => name).values();
  }

  values() {
    return this.#fields.map(([, value]) => value).values();
  }

  [Symbol.iterator]() {
    return this.entries();
  }

  get [Symbol.toStringTag]() {
    return "FormData";
  }
}

/** @param {unknown} value */
function field(value) {
  if (typeof value === "object" && value !== null) throw new TypeError("FormData: there are no files here, only texts");
  return String(value).toWellFormed();
}

// A component that renders again only if its properties differ: `memo` of preact/compat without the rest of it.

import { Component, h } from "preact";

/**
 * @template {object} P
 * @param {(props: P) => import("preact").ComponentChild} Of
 * @param {(before: P, next: P) => boolean} same
 */
export function memo(Of, same) {
  return class extends Component {
    /** @param {any} next */
    shouldComponentUpdate(next) {
      return !same(/** @type {any} */ (this.props), next);
    }
    render() {
      return h(/** @type {any} */ (Of), this.props);
    }
  };
}

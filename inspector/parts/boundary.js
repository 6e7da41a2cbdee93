// An error boundary around a screen: a rendering error is shown in its place, and the rest of the page keeps working.

import { Component } from "preact";
import { html } from "../lib/html.js";
import { Problem } from "./ui.js";

/** @augments {Component<{ children?: import("preact").ComponentChildren }, { error?: unknown }>} */
export class Boundary extends Component {
  state = /** @type {{ error?: unknown }} */ ({});

  /** @param {unknown} error */
  componentDidCatch(error) {
    console.error(error);
    this.setState({ error });
  }

  render() {
    const { error } = this.state;
    if (error === undefined) return this.props.children;
    const words = error instanceof Error ? error.message : String(error);
    return html`<${Problem} of=${`This cannot be shown: ${words}`} again=${() => this.setState({ error: undefined })} />`;
  }
}

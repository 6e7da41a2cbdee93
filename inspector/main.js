// The page: shows the screen for the current address.

import { render } from "preact";
import { useEffect, useState } from "preact/hooks";
import { onKeyWanted } from "./lib/api.js";
import { html } from "./lib/html.js";
import { hrefOf, usePlace } from "./lib/route.js";
import { useOpenWaits } from "./lib/waits.js";
import { Boundary } from "./parts/boundary.js";
import { Icon, Mark } from "./parts/icons.js";
import { Application } from "./screens/application.js";
import { KeyScreen } from "./screens/key.js";
import { ThreadScreen } from "./screens/thread.js";
import { Waiting } from "./screens/waiting.js";
import { Threads } from "./screens/threads.js";

/** @typedef {import("./lib/route.js").Place} Place */

/** @param {{ place: Place, waiting: number }} props */
const Rail = ({ place, waiting }) => html`
  <header class="rail">
    <a class="brand" href="#/"><${Mark} /><span>Bobbin</span></a>
    <nav aria-label="Screens">
      ${[
        { screen: "threads", icon: "threads", label: "Threads" },
        { screen: "waiting", icon: "waiting", label: "Waiting" },
        { screen: "app", icon: "app", label: "Application" },
      ].map(
        ({ screen, icon, label }) => html`<a
          href=${hrefOf({ screen: /** @type {any} */ (screen) })}
          aria-current=${place.screen === screen || (screen === "threads" && place.screen === "thread") ? "page" : undefined}
        >
          <${Icon} name=${icon} /><span>${label}</span>${screen === "waiting" && waiting > 0 && html`<b class="number">${waiting}<span class="unseen"> open</span></b>`}
        </a>`,
      )}
    </nav>
  </header>
`;

function App() {
  const place = usePlace();
  const [wanted, setWanted] = useState(/** @type {{ refused: boolean } | undefined} */ (undefined));
  const [turn, setTurn] = useState(0);
  useEffect(() => onKeyWanted((refused) => setWanted({ refused })), []);
  if (wanted) {
    const given = () => {
      setWanted(undefined);
      setTurn(turn + 1);
    };
    return html`<${KeyScreen} refused=${wanted.refused} onGiven=${given} />`;
  }
  return html`<${Screens} key=${turn} place=${place} />`;
}

/** @param {{ place: Place }} props */
function Screens({ place }) {
  const waits = useOpenWaits();
  const of = place.thread;
  return html`
    <${Rail} place=${place} waiting=${waits.all.length} />
    <main class="screens" data-screen=${place.screen} data-step=${place.message !== undefined || undefined}>
      ${(place.screen === "threads" || place.screen === "thread") && html`<${Boundary} key="threads"><${Threads} selected=${of} waits=${waits} /><//>`}
      ${place.screen === "thread" && of !== undefined && html`<${Boundary} key=${of}><${ThreadScreen} id=${of} place=${place} /><//>`}
      ${place.screen === "app" && html`<${Boundary} key="app"><${Application} agent=${place.agent} /><//>`}
      ${place.screen === "waiting" && html`<${Boundary} key="waiting"><${Waiting} waits=${waits} /><//>`}
    </main>
  `;
}

const root = document.getElementById("app");
if (root) render(html`<${App} />`, root);

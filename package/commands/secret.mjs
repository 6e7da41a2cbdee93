// `bobbin secret`: manages the secrets of a deployment.

import { join } from "node:path";
import { Complaint, EXIT } from "../lib/complaint.mjs";
import { openProject } from "../lib/project.mjs";
import { secretsOf, wranglerIn } from "../lib/wrangler.mjs";

/** @type {import("./index.mjs").Command} */
export const command = {
  usage: "secret [NAME] [--delete] [--json]",
  help: `  NAME        sets this secret: prompts for the value, or reads it from standard input
  --delete    deletes it
  --json      without NAME: { "secrets": [names] }

Without NAME it lists the names of the deployment's secrets. For development, put values into .dev.vars.`,
  options: { delete: { type: "boolean", default: false }, json: { type: "boolean", default: false } },
  run: async (values, [name, ...more]) => {
    if (more.length > 0) throw new Complaint("`bobbin secret` takes one name. It prompts for the value, so that no shell stores it.", EXIT.usage);
    const project = openProject();
    const wrangler = wranglerIn(project.root);
    const config = join(project.root, "wrangler.jsonc");
    if (name === undefined) {
      if (values["delete"]) throw new Complaint("--delete needs the name of a secret.", EXIT.usage);
      const secrets = secretsOf(wrangler, config);
      if (secrets === undefined) throw new Complaint(`${project.config.name} is not deployed yet. Run \`bobbin deploy\`.`);
      return console.log(values["json"] ? JSON.stringify({ secrets }) : secrets.join("\n"));
    }
    if (!/^[A-Za-z_][A-Za-z0-9_]*$/.test(name)) throw new Complaint(`“${name}” is not a valid name of a variable.`, EXIT.usage);
    const code = wrangler.show(["secret", values["delete"] ? "delete" : "put", name, "--config", config]);
    if (code !== 0) throw new Complaint(`${name} was not changed.`);
  },
};

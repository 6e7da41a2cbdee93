//! Tools that servers list while threads run, in the catalog: from there on they are tools as any.

use crate::definitions::catalog::Catalog;
use crate::definitions::mcp::listed::ListedTool;
use crate::definitions::prompt::{Prompt, ToolEntry};

impl Catalog {
    /// The catalog with what servers list, by the servers' names: prompts have these tools in the place of the servers' entries.
    /// What cannot be offered, or has a name that is taken, is left out.
    pub fn with_live(&self, lists: &[(&str, &[ListedTool])]) -> Catalog {
        let mut catalog = self.clone();
        for (server, listed) in lists {
            let Some(server) = self.mcp.get(*server) else { continue };
            let mut names: Vec<(&str, String)> = Vec::new();
            for (_, tool, made) in server.offered(listed) {
                let Ok(made) = made else { continue };
                if catalog.callable(&made.name).is_none() {
                    names.push((&tool.name, made.name.clone()));
                    catalog.tools.insert(made.name.clone(), made);
                }
            }
            // The same order, in whichever they are listed: what providers have kept of a prompt holds.
            names.sort_by(|(_, one), (_, other)| one.cmp(other));
            catalog.prompts.values_mut().for_each(|prompt| offer(prompt, &server.name, &names));
        }
        catalog
    }
}

/// Puts tools of a server, by their names there and here, in the place of its entries.
fn offer(prompt: &mut Prompt, server: &str, names: &[(&str, String)]) {
    if prompt.tools.iter().all(|entry| entry.mcp() != Some(server)) {
        return;
    }
    let mut tools: Vec<ToolEntry> = Vec::new();
    for entry in std::mem::take(&mut prompt.tools) {
        if entry.mcp() != Some(server) {
            tools.push(entry);
            continue;
        }
        let wanted =
            |own: &str| entry.tools.as_ref().is_none_or(|tools| tools.iter().any(|name| name == own));
        for (_, name) in names.iter().filter(|(own, _)| wanted(own)) {
            if tools.iter().all(|known| known.name != *name) {
                tools.push(ToolEntry { env: entry.env.clone(), ..ToolEntry::unlisted(name) });
            }
        }
    }
    prompt.tools = tools;
}

#[cfg(test)]
mod tests {
    use serde_json::Value;

    use crate::definitions::{Catalog, Implementation, ListedTool, Tool};
    use crate::json;

    fn listed(names: &[&str]) -> Vec<ListedTool> {
        let tool = |name: &&str| json!({ "name": name, "inputSchema": { "type": "object" } });
        crate::json::from_value(names.iter().map(tool).collect::<Value>()).unwrap()
    }

    #[test]
    fn prompts_have_what_a_server_lists_in_the_place_of_its_entry() {
        let prompt =
            |tools: Value| json!({ "toolDescription": "d", "model": "m", "prompt": "p", "tools": tools });
        let catalog = json!({
            "mcp": { "shop": { "url": "https://a.example", "list": "live", "tools": { "block": ["secret"] } } },
            "tools": { "clock": { "description": "d", "run": { "native": "clock" } },
                "shop__taken": { "description": "mine", "run": { "native": "clock" } } },
            "prompts": {
                "all": prompt(json!(["clock", { "mcp": "shop", "env": { "A": "1" } }])),
                "some": prompt(json!([{ "mcp": "shop", "tools": ["find", "gone"] }, "mcp:shop"])),
                "none": prompt(json!(["clock"])),
            },
        });
        let catalog = Catalog::from_json(&catalog.to_string()).unwrap();
        let tools = listed(&["zip", "find", "secret", "taken", "bad name", "\u{1}"]);
        let grown = catalog.with_live(&[("shop", &tools), ("elsewhere", &tools)]);
        let names = |prompt: &str| -> Vec<String> {
            grown.prompts.get(prompt).unwrap().tools.iter().map(|entry| entry.name.clone()).collect()
        };
        assert_eq!(names("all"), ["clock", "shop__bad_name", "shop__find", "shop__zip"]);
        assert_eq!(grown.prompts.get("all").unwrap().tools[2].env.get("A").unwrap(), "1");
        assert_eq!(names("some"), ["shop__find", "shop__bad_name", "shop__zip"]);
        assert_eq!(names("none"), ["clock"]);
        assert_eq!(grown.tools.get("shop__taken").unwrap().description, "mine");
        assert!(catalog.callable("shop__find").is_none(), "the compiled one is as it was");
    }

    #[test]
    fn names_that_would_be_the_same_are_told_apart_in_whichever_order_they_are_listed() {
        let catalog = json!({ "mcp": { "shop": { "url": "https://a.example", "list": "live" } } });
        let catalog = Catalog::from_json(&catalog.to_string()).unwrap();
        let long = ["x".repeat(80) + "1", "x".repeat(80) + "2"];
        let mut tools = listed(&["a/b", "a_b", "a b", &long[0], &long[1], "c/d"]);
        let names = |tools: &[ListedTool]| -> Vec<(String, String)> {
            let grown = catalog.with_live(&[("shop", tools)]);
            let own = |tool: &Tool| match &tool.run {
                Implementation::Mcp(of) => of.tool.clone(),
                _ => String::new(),
            };
            grown.tools.iter().map(|(name, tool)| (name.clone(), own(tool))).collect()
        };
        let all = names(&tools);
        assert_eq!(all.len(), 6, "{all:?}");
        assert!(
            all.contains(&("shop__a_b".into(), "a_b".into())),
            "who is called so keeps the name: {all:?}"
        );
        assert!(all.contains(&("shop__c_d".into(), "c/d".into())), "so does a name that is alone: {all:?}");
        assert!(all.iter().all(|(name, _)| name.len() <= 64), "{all:?}");
        tools.reverse();
        assert_eq!(names(&tools), all);
    }
}

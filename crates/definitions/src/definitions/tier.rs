//! The changes that a call of a tool may make (docs/tools.md, Tiers).

use crate::definitions::natives;
use crate::definitions::tool::{Implementation, Tier, Tool};

/// The tier of a tool: from its definition, or else the known tier of the native function. A `read_only` tool
/// with `"idempotent": false` counts as side-effecting, because the tier promises that calls can be repeated.
pub fn tier(tool: &Tool) -> Tier {
    let known = || match &tool.run {
        Implementation::Native(name) => natives::tier(name),
        _ => Tier::SideEffecting,
    };
    match tool.tier.unwrap_or_else(known) {
        Tier::ReadOnly if tool.idempotent == Some(false) => Tier::SideEffecting,
        tier => tier,
    }
}

/// Whether a call that failed, or whose outcome was lost, may be repeated with the same key.
pub fn may_repeat(tool: &Tool) -> bool {
    tool.idempotent.unwrap_or_else(|| tier(tool) == Tier::ReadOnly)
}

#[cfg(test)]
mod tests {
    use crate::json;
    use serde_json::Value;

    use super::*;

    fn tool(fields: Value) -> Tool {
        let mut tool = json!({ "name": "t", "description": "Does." });
        tool.as_object_mut().unwrap().extend(fields.as_object().unwrap().clone());
        crate::json::from_value(tool).unwrap()
    }

    #[test]
    fn a_tool_has_the_tier_that_it_says_or_that_of_its_native_function() {
        let http = json!({ "http": { "url": "https://a.example" } });
        for (fields, expected, repeats) in [
            (json!({ "run": http }), Tier::SideEffecting, false),
            (json!({ "run": http, "idempotent": true }), Tier::SideEffecting, true),
            (json!({ "run": http, "tier": "read_only" }), Tier::ReadOnly, true),
            (json!({ "run": http, "tier": "privileged" }), Tier::Privileged, false),
            (json!({ "run": { "native": "calculate" } }), Tier::ReadOnly, true),
            (json!({ "run": { "native": "calculate" }, "idempotent": false }), Tier::SideEffecting, false),
            (json!({ "run": { "native": "calculate" }, "tier": "privileged" }), Tier::Privileged, false),
            (json!({ "run": { "native": "wait" } }), Tier::SideEffecting, false),
            (json!({ "run": { "native": "execute_code" } }), Tier::Privileged, false),
            (json!({ "run": { "native": "somebody's own" } }), Tier::SideEffecting, false),
        ] {
            let tool = tool(fields);
            assert_eq!((tier(&tool), may_repeat(&tool)), (expected, repeats), "{tool:?}");
        }
    }
}

//! The identity of a decision's subject: one call of one tool, with its current definition and arguments. A
//! deployment that changes the tool changes the digest, and the person must decide again.

use serde_json::Value;
use sha2::{Digest, Sha256};

use crate::definitions::Tool;
use crate::error::{Error, Result};
use crate::json::canonical;

/// SHA-256 over tool, definition and arguments, in hexadecimal. Object keys are sorted, so that equal calls
/// have equal digests.
pub(super) fn digest(tool: &Tool, args: &Value) -> Result<String> {
    let definition = serde_json::to_value(tool).map_err(Error::internal)?;
    Ok(hash(&[&tool.name, &canonical(&definition), &canonical(args)]))
}

/// The key of a remembered approval: `<tool>:<hash of its definition and the arguments>`. If `by` names
/// arguments, only those count. A changed tool gets another key.
pub(super) fn key(tool: &Tool, args: &Value, by: &[String]) -> Result<String> {
    let part = match args.as_object().filter(|_| !by.is_empty()) {
        Some(fields) => {
            fields.iter().filter(|(name, _)| by.contains(name)).map(|(n, v)| (n.clone(), v.clone())).collect()
        }
        None => args.clone(),
    };
    Ok(format!("{}:{}", tool.name, digest(tool, &part)?))
}

fn hash(parts: &[&str]) -> String {
    let mut digest = Sha256::new();
    for part in parts {
        digest.update((part.len() as u64).to_be_bytes());
        digest.update(part.as_bytes());
    }
    digest.finalize().iter().map(|byte| format!("{byte:02x}")).collect()
}

#[cfg(test)]
mod tests {
    use crate::json;

    use super::*;

    fn tool(url: &str) -> Tool {
        crate::json::from_value(
            json!({ "name": "pay", "description": "Pays.", "run": { "http": { "url": url } } }),
        )
        .unwrap()
    }

    #[test]
    fn the_same_call_has_the_same_digest_and_any_other_has_another() {
        let one =
            digest(&tool("https://a"), &json!({ "to": "ann", "of": { "x": [1, 2], "y": null } })).unwrap();
        assert_eq!(
            one,
            digest(&tool("https://a"), &json!({ "of": { "y": null, "x": [1, 2] }, "to": "ann" })).unwrap()
        );
        assert_eq!(one.len(), 64);
        for (url, args) in [
            ("https://b", json!({ "to": "ann", "of": { "x": [1, 2], "y": null } })),
            ("https://a", json!({ "to": "ann", "of": { "x": [2, 1], "y": null } })),
            ("https://a", json!({ "to": "ann", "of": { "x": [1, 2] } })),
            ("https://a", json!({ "to": "1", "of": {} })),
            ("https://a", json!({ "to": 1, "of": {} })),
        ] {
            assert_ne!(one, digest(&tool(url), &args).unwrap(), "{url} {args}");
        }
    }

    #[test]
    fn what_is_remembered_is_about_the_tool_and_the_arguments_that_are_named() {
        let by = ["to".to_owned()];
        let args = |to: &str, amount: i64| json!({ "to": to, "amount": amount });
        let here = tool("https://a");
        let key = |tool: &Tool, args: Value, by: &[String]| key(tool, &args, by).unwrap();
        assert!(key(&here, args("ann", 1), &by).starts_with("pay:"));
        assert_eq!(key(&here, args("ann", 1), &by), key(&here, args("ann", 2), &by));
        assert_ne!(key(&here, args("ann", 1), &[]), key(&here, args("ann", 2), &[]));
        assert_ne!(key(&here, args("ann", 1), &by), key(&here, args("bob", 1), &by));
        assert_ne!(key(&here, args("ann", 1), &by), key(&tool("https://b"), args("ann", 1), &by));
    }
}

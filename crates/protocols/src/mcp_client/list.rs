//! Results of `tools/list`: pages of tools.

use serde_json::{Map, Value};

use crate::mcp_client::ask::Ask;
use bobbin_definitions::definitions::ListedTool;

/// Maximum bytes of a cursor.
const CURSOR_BYTES: usize = 4096;

/// One page.
#[derive(Debug, PartialEq)]
pub struct Page {
    /// The tools, without unreadable ones.
    pub tools: Vec<ListedTool>,
    /// The cursor of the next page.
    pub cursor: Option<String>,
    /// Milliseconds for which the page is valid, if given.
    pub ttl_ms: Option<u64>,
}

impl Ask {
    /// `tools/list`.
    pub fn list(cursor: Option<&str>) -> Ask {
        let cursor = cursor.map(|cursor| ("cursor".to_owned(), cursor.into()));
        Ask::of("tools/list", cursor.into_iter().collect())
    }
}

impl Page {
    /// Parses a result.
    ///
    /// # Errors
    /// The reason why it is not a page.
    pub fn of(mut result: Map<String, Value>) -> Result<Page, &'static str> {
        let Some(Value::Array(tools)) = result.remove("tools") else {
            return Err("it has no list of tools");
        };
        let cursor = match result.remove("nextCursor") {
            Some(Value::String(cursor)) if cursor.len() > CURSOR_BYTES => {
                return Err("its cursor is too long");
            }
            // Since 2026-07-28, whose results have a type, an empty cursor is valid. Some older servers end a
            // list with one.
            Some(Value::String(cursor)) if cursor.is_empty() && !result.contains_key("resultType") => None,
            Some(Value::String(cursor)) => Some(cursor),
            _ => None,
        };
        let tools =
            tools.into_iter().filter_map(|tool| bobbin_definitions::json::from_value(tool).ok()).collect();
        Ok(Page { tools, cursor, ttl_ms: result.get("ttlMs").and_then(Value::as_u64) })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use bobbin_definitions::json;

    #[test]
    fn a_page_is_its_tools_and_where_the_next_one_is() {
        let page = |value: Value| Page::of(value.as_object().unwrap().clone());
        let tool = json!({ "name": "a", "inputSchema": { "type": "object" }, "icons": [] });
        let whole = page(
            json!({ "tools": [tool, { "name": 7 }, "x"], "nextCursor": "c", "ttlMs": 5, "cacheScope": "private" }),
        );
        let Page { tools, cursor, ttl_ms } = whole.unwrap();
        assert_eq!(
            (tools.len(), tools[0].name.as_str(), cursor.as_deref(), ttl_ms),
            (1, "a", Some("c"), Some(5))
        );
        assert_eq!(page(json!({ "tools": [], "nextCursor": "" })).unwrap().cursor, None);
        let empty = json!({ "resultType": "complete", "tools": [], "nextCursor": "" });
        assert_eq!(page(empty).unwrap().cursor.as_deref(), Some(""));
        assert!(page(json!({ "items": [] })).is_err());
        assert!(page(json!({ "tools": [], "nextCursor": "c".repeat(5000) })).is_err());
        assert_eq!(Ask::list(Some("c")).params["cursor"], "c");
        assert!(Ask::list(None).params.is_empty());
    }
}

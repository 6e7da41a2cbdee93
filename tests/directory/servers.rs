//! How MCP servers answer, as the root is told.

use bobbin::directory::DirectoryCall;
use bobbin::request::directory_call::{McpError, McpListed, McpReport};
use serde_json::{Value, json};

use crate::call;
use crate::host::World;

fn told(at_us: i64, error: Option<&str>) -> DirectoryCall {
    let error = error.map(|text| McpError { code: "mcp_unreachable".into(), message: text.into() });
    DirectoryCall::McpTold { report: McpReport { server: "shop".into(), at_us, error, listed: None } }
}

#[test]
fn the_newest_success_and_the_newest_failure_of_a_server_are_known_in_whatever_order_they_come() {
    let reports =
        [told(10, None), told(20, Some("away")), told(30, None), told(40, Some("gone")), told(50, None)];
    for first in 0..reports.len() {
        let root = World::new();
        assert_eq!(call(&root.open(), &DirectoryCall::McpKnown), (200, json!({ "servers": [] })));
        // Begins in the middle, and some come twice.
        for at in 0..2 * reports.len() - 2 {
            let answer = call(&root.open(), &reports[(first + at * 3) % reports.len()]);
            assert_eq!(answer, (200, json!({})));
        }
        let known: Value = call(&root.open(), &DirectoryCall::McpKnown).1;
        let error = json!({ "code": "mcp_unreachable", "message": "gone" });
        let expected = json!({ "server": "shop", "success_us": 50, "failure_us": 40, "error": error });
        assert_eq!(known, json!({ "servers": [expected] }), "{first}");
    }
}

#[test]
fn the_newest_list_of_a_server_is_known_whatever_is_told_later_of_its_answers() {
    let listed = |at_us, tool: &str| {
        let tools = vec![(tool.to_owned(), "Finds things.".to_owned())];
        let listed = McpListed { protocol: "2025-11-25".into(), tools };
        DirectoryCall::McpTold {
            report: McpReport { server: "shop".into(), at_us, error: None, listed: Some(listed) },
        }
    };
    let root = World::new();
    for told in [listed(20, "find"), listed(10, "search"), told(30, None), told(40, Some("gone"))] {
        assert_eq!(call(&root.open(), &told).0, 200);
    }
    let known = call(&root.open(), &DirectoryCall::McpKnown).1;
    let server = &known["servers"][0];
    assert_eq!(server["listed"], json!({ "protocol": "2025-11-25", "tools": [["find", "Finds things."]] }));
    assert_eq!((&server["success_us"], &server["failure_us"]), (&json!(30), &json!(40)));
}

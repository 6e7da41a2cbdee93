//! Native functions of the runtime, by name. The functions themselves are in the crate `bobbin`, whose tests
//! compare them with these lists.

use crate::definitions::tool::Tier;

/// Native tools with their tiers. `wait` counts as side-effecting, to demonstrate the recovery of such a call.
pub const TOOLS: &[(&str, Tier)] = &[
    (crate::definitions::ask_user::NAME, Tier::SideEffecting),
    ("calculate", Tier::ReadOnly),
    ("call_each", Tier::SideEffecting),
    ("call_later", Tier::SideEffecting),
    ("convert_units", Tier::ReadOnly),
    ("current_time", Tier::ReadOnly),
    (crate::definitions::execute_code::NAME, Tier::Privileged),
    ("list_files", Tier::ReadOnly),
    (crate::definitions::skill::LOAD, Tier::ReadOnly),
    ("memory_delete", Tier::SideEffecting),
    ("memory_save", Tier::SideEffecting),
    ("memory_search", Tier::ReadOnly),
    ("memory_update", Tier::SideEffecting),
    ("read_file", Tier::ReadOnly),
    ("recall", Tier::ReadOnly),
    ("remind_me", Tier::SideEffecting),
    ("remember", Tier::SideEffecting),
    ("roll_dice", Tier::ReadOnly),
    ("say", Tier::ReadOnly),
    ("scratchpad_clear", Tier::SideEffecting),
    ("scratchpad_read", Tier::ReadOnly),
    ("scratchpad_write", Tier::SideEffecting),
    ("search_files", Tier::ReadOnly),
    ("text_statistics", Tier::ReadOnly),
    ("wait", Tier::SideEffecting),
    ("write_file", Tier::SideEffecting),
];

/// Native effects.
pub const EFFECTS: &[&str] = &["queue_message"];

/// Native endpoints.
pub const ENDPOINTS: &[&str] = &["summary", "transcript"];

/// Native hooks.
pub const HOOKS: &[&str] = &["date_in_prompt", "keep_last_20", "limit_results"];

/// Providers of models.
pub const PROVIDERS: &[&str] = &["anthropic", "demo", "openai", "workers-ai"];

/// The tier of a native tool. A tool that a crate adds is side-effecting.
pub fn tier(name: &str) -> Tier {
    TOOLS.iter().find(|(known, _)| *known == name).map_or(Tier::SideEffecting, |(_, tier)| *tier)
}

//! The tables of a thread, and threads that another version has written.

use bobbin::request::ThreadRoute;

use super::story;

/// Every table of a thread that has no text among its files.
const TABLES: [&str; 15] = [
    "bodies",
    "calls",
    "children",
    "chunks",
    "effects",
    "env",
    "files",
    "idempotency",
    "logs",
    "messages",
    "meta",
    "objects",
    "outbox",
    "runs",
    "vals",
];

#[test]
fn a_new_thread_gets_the_tables_and_a_deleted_one_has_none() {
    story("the tables")
        .drive(|sim| async move {
            let tables = || {
                sim.world.database.ask::<String>(
                    "SELECT name FROM sqlite_schema WHERE type = 'table' AND name NOT LIKE 'sqlite_%' ORDER BY name",
                )
            };
            assert_eq!(tables(), TABLES);
            assert_eq!(sim.world.database.ask::<i64>("SELECT schema FROM meta"), [1]);
            let deleted = sim.once(ThreadRoute::Delete, &[], None, String::new()).await.unwrap();
            assert_eq!(deleted.status, 200);
            assert!(tables().is_empty(), "{:?}", tables());
            // The contract's last look needs a thread.
            sim.create().await;
        })
        .calm();
}

#[test]
fn a_thread_that_a_newer_version_has_written_is_left_alone() {
    story("a newer schema")
        .drive(|sim| async move {
            sim.evict().await;
            let today: Vec<i64> = sim.world.database.ask("SELECT schema FROM meta");
            sim.world.database.alter("UPDATE meta SET schema = 99");
            let seen = sim.once(ThreadRoute::Get, &[], None, String::new()).await.unwrap();
            assert_eq!(seen.status, 500);
            assert!(seen.body["error"]["message"].as_str().unwrap().contains("schema 99"), "{}", seen.body);
            sim.world.database.alter(&format!("UPDATE meta SET schema = {}", today[0]));
        })
        .calm();
}

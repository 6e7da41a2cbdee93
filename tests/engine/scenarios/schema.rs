//! Threads that an older version has written.

use bobbin::request::ThreadRoute;
use serde_json::json;

use super::story;
use crate::sim::Sim;

const FIRST: &str = include_str!("../fixtures/schema-1.sql");

/// Tables that the first version had and that hold what the story needs.
const KEPT: [&str; 6] = ["meta", "messages", "runs", "calls", "logs", "idempotency"];

/// Every table, column (name, type, default, key) and index.
fn shape(sim: &Sim) -> Vec<String> {
    sim.world.database.ask(
        "SELECT t.name || ' ' || c.name || ' ' || c.type || ' ' || c.\"notnull\" || ' ' || coalesce(c.dflt_value, '')
            || ' ' || c.pk FROM sqlite_schema t, pragma_table_info(t.name) c WHERE t.type = 'table'
         UNION ALL SELECT 'index ' || name || ' ' || coalesce(sql, '') FROM sqlite_schema WHERE type = 'index'
         ORDER BY 1",
    )
}

/// Puts the thread back to what the first version would have written of it.
fn as_first_written(sim: &Sim) {
    let database = &sim.world.database;
    for table in KEPT {
        database.alter(&format!("CREATE TEMP TABLE kept_{table} AS SELECT * FROM {table}"));
    }
    let tables = "SELECT name FROM sqlite_schema WHERE type = 'table' AND name NOT LIKE 'sqlite_%'";
    for table in database.ask::<String>(tables) {
        database.alter(&format!("DROP TABLE {table}"));
    }
    database.alter(FIRST);
    for table in KEPT {
        let columns: Vec<String> = database.ask(&format!("SELECT name FROM pragma_table_info('{table}')"));
        let (columns, from) = (columns.join(", "), format!("kept_{table}"));
        database.alter(&format!(
            "INSERT INTO {table} ({columns}) SELECT {columns} FROM {from}; DROP TABLE {from}"
        ));
    }
    database.alter("UPDATE meta SET schema = 1");
}

#[test]
fn a_thread_of_the_first_version_comes_to_the_same_tables_and_goes_on() {
    story("the first schema")
        .drive(|sim| async move {
            sim.ask("hello").await;
            sim.evict().await;
            let (today, tables) = (sim.world.database.ask::<i64>("SELECT schema FROM meta"), shape(&sim));
            as_first_written(&sim);
            assert_ne!(shape(&sim), tables);
            sim.insist(ThreadRoute::PostValue, &[], None, json!({ "key": "a", "value": 1 }).to_string())
                .await;
            assert_eq!(sim.ask("use work").await["message"]["content"], "done: w0");
            assert_eq!(shape(&sim), tables);
            assert_eq!(sim.world.database.ask::<i64>("SELECT schema FROM meta"), today);
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

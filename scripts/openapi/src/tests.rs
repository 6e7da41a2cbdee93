use std::collections::BTreeSet;

use bobbin_protocols::request::table;

use super::*;

#[test]
fn every_route_is_described_once() {
    let described: Vec<&str> = routes::all().iter().map(|one| one.id).collect();
    let missing: Vec<&str> = table::all().map(|row| row.id).filter(|id| !described.contains(id)).collect();
    assert!(missing.is_empty(), "not described: {missing:?}");
}

#[test]
fn every_operation_has_a_name_of_its_own_and_an_answer() {
    let all = routes::all();
    let names: BTreeSet<&str> = all.iter().map(|one| one.id).collect();
    assert_eq!(names.len(), all.len());
    for one in &all {
        assert!(!one.answers.is_empty() && !one.summary.is_empty(), "{}", one.id);
    }
}

#[test]
fn every_reference_leads_to_a_schema() {
    let document = document();
    let schemas = document["components"]["schemas"].as_object().unwrap();
    let text = document.to_string();
    let named: BTreeSet<&str> =
        text.split("#/components/schemas/").skip(1).filter_map(|rest| rest.split('"').next()).collect();
    for name in &named {
        assert!(schemas.contains_key(*name), "{name} is nowhere");
    }
    for name in schemas.keys() {
        assert!(named.contains(name.as_str()), "{name} is used by nothing");
    }
}

#[test]
fn the_committed_document_is_fresh() {
    run(true).unwrap();
}

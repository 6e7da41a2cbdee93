use std::collections::BTreeSet;

use bobbin_protocols::request::table::TABLE;

use super::*;

/// A path in the format of the table of routes.
fn in_table(path: &str) -> String {
    let part = |(at, part): (usize, &str)| match part {
        "{index}" => "0".to_owned(),
        "{threadId}" if at == 3 => ":thread".to_owned(),
        part if part.starts_with('{') => ":item".to_owned(),
        part => part.to_owned(),
    };
    path.split('/').enumerate().map(part).collect::<Vec<_>>().join("/")
}

#[test]
fn every_route_is_told_of_and_nothing_else() {
    let told: BTreeSet<(String, String)> =
        routes::all().iter().map(|one| (one.method.to_owned(), in_table(one.path))).collect();
    let known: BTreeSet<(String, String)> =
        TABLE.iter().map(|(method, path)| ((*method).to_owned(), (*path).to_owned())).collect();
    let missing: Vec<_> = known.difference(&told).collect();
    let unknown: Vec<_> = told.difference(&known).collect();
    assert!(missing.is_empty() && unknown.is_empty(), "not told of: {missing:?}\nno routes: {unknown:?}");
    for one in routes::all() {
        assert!(
            parameters::route(one.method, one.path).is_some(),
            "{} {} leads nowhere",
            one.method,
            one.path
        );
    }
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

//! Skills: folders with a `SKILL.md`.

use bobbin_definitions::definitions::skill::{LOAD, hash, hash_of_files};

use super::*;

const SKILL: &str = "---\nname: refunds\ndescription: How refunds are decided.\nrequires: [clock]\n---\n\nA refund is granted.\n";
const TOOL: (&str, &str) = ("tools/clock.json", r#"{ "description": "d", "run": { "native": "clock" } }"#);

fn with_prompt<'a>(more: &'a str, files: &[(&'a str, &'a str)]) -> Vec<(&'a str, &'a str)> {
    let mut all = vec![MODEL, AGENT, TOOL, ("prompts/helper.md", more)];
    all.extend_from_slice(files);
    all
}

const LISTS: &str = "---\ntoolDescription: d\nmodel: fast\nincludeChat: true\ntools: [clock]\nskills: [refunds]\n---\n\nYou help.\n";

#[test]
fn a_folder_becomes_a_skill_with_its_files_and_hashes() {
    let files = [("skills/refunds/SKILL.md", SKILL), ("skills/refunds/texts/letter.md", "Dear …\r\n")];
    let compiled = compiled(&with_prompt(LISTS, &files));
    assert_eq!(report(&compiled.complaints), "");
    let skill = compiled.catalog.skills.get("refunds").unwrap();
    assert_eq!((skill.body.as_str(), skill.path.as_str()), ("A refund is granted.", "skills/refunds"));
    assert_eq!(skill.files.get("texts/letter.md").unwrap(), "Dear …\n", "line ends are made the same");
    assert_eq!(skill.hash, hash_of_files([("SKILL.md", SKILL), ("texts/letter.md", "Dear …\n")]));
    assert!(
        compiled.catalog.prompts.get("helper").unwrap().tool(LOAD).is_some()
            && compiled.catalog.tools.contains_key(LOAD)
    );
    assert_eq!(compiled.catalog.files.get("skill refunds").unwrap(), "skills/refunds/SKILL.md");
    let bare = Catalog { hash: String::new(), runtime: String::new(), ..compiled.catalog.clone() };
    assert_eq!(compiled.catalog.hash, hash(&serde_json::to_string(&bare).unwrap()));
}

#[test]
fn every_recipe_is_compiled_without_a_complaint() {
    let recipes = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/recipes");
    let mut count = 0;
    for entry in fs::read_dir(recipes).unwrap() {
        let compiled =
            compile(&folder_at(&entry.unwrap().path()), BTreeMap::new(), &Natives::built_in()).unwrap();
        assert_eq!(report(&compiled.complaints), "");
        count += 1;
    }
    assert!(count >= 8);
}

#[test]
fn what_is_wrong_with_a_skill_is_told() {
    let long = format!("---\ndescription: d\n---\n\n{}\n", "word ".repeat(3_659));
    let big = "x".repeat((256 << 10) + 1);
    for (files, expected) in [
        (
            vec![("skills/refunds/SKILL.md", "No front matter.")],
            "skills/refunds/SKILL.md:1:1: error: must begin with front matter: a line `---`, YAML, and another line `---`",
        ),
        (
            vec![("skills/refunds/SKILL.md", SKILL), ("skills/odd.md", "x")],
            "skills/odd.md: warning: not read: a skill is a folder with a SKILL.md",
        ),
        (
            vec![("skills/refunds/SKILL.md", SKILL), ("skills/empty/notes.md", "x")],
            "skills/empty/SKILL.md: error: there is none: it holds the skill",
        ),
        (
            vec![("skills/refunds/SKILL.md", SKILL), ("skills/Bad/SKILL.md", "---\ndescription: d\n---\nx")],
            "skills/Bad/SKILL.md: error in name: the name \"Bad\" may hold only lower-case letters, digits and -",
        ),
        (
            vec![("skills/refunds/SKILL.md", long.as_str())],
            "skills/refunds/SKILL.md: error: the text has about 3001 tokens; at most 3000 are allowed: keep what is seldom needed in files beside it",
        ),
        (
            vec![("skills/refunds/SKILL.md", SKILL), ("skills/refunds/big.txt", big.as_str())],
            "skills/refunds/SKILL.md: error in big.txt: has 262145 bytes; at most 262144 are allowed",
        ),
        (
            vec![("skills/refunds/SKILL.md", "---\ndescription: d\nrequires: [clok]\n---\nx")],
            "skills/refunds/SKILL.md: error in requires[0]: no tool named \"clok\"; did you mean \"clock\"?",
        ),
        (
            vec![("skills/refund/SKILL.md", "---\ndescription: d\n---\nx")],
            "prompts/helper.md: error in skills[0]: no skill named \"refunds\"; did you mean \"refund\"?",
        ),
    ] {
        let told = told(&with_prompt(LISTS, &files));
        assert!(told.iter().any(|line| line == expected), "{expected}\n{told:#?}");
    }
}

#[test]
fn a_prompt_says_which_skills_are_always_active() {
    let body = "word ".repeat(3_353);
    let skill = format!("---\ndescription: d\nactivation: always\n---\n\n{body}\n");
    let three =
        ["skills/a/SKILL.md", "skills/b/SKILL.md", "skills/c/SKILL.md"].map(|path| (path, skill.as_str()));
    let all = "---\ntoolDescription: d\nmodel: fast\nincludeChat: true\nskills: \"*\"\n---\n\nYou help.\n";
    assert_eq!(
        told(&with_prompt(all, &three)),
        [
            "prompts/helper.md: error in skills: those that are always active have about 8250 tokens together; at most 6000 are allowed: let the model load some (`\"activation\": \"auto\"`)"
        ]
    );
    let some = "---\ntoolDescription: d\nmodel: fast\nincludeChat: true\nskills: [a, { name: b, activation: auto }]\n---\n\nYou help.\n";
    assert_eq!(told(&with_prompt(some, &three)), [""; 0]);
    let wrong = "---\ntoolDescription: d\nmodel: fast\nincludeChat: true\nskills: all\n---\n\nYou help.\n";
    assert!(told(&with_prompt(wrong, &three))[0].contains("\"*\" for all skills"));
    let unmet =
        "---\ntoolDescription: d\nmodel: fast\nincludeChat: true\nskills: [refunds]\n---\n\nYou help.\n";
    assert_eq!(
        told(&with_prompt(unmet, &[("skills/refunds/SKILL.md", SKILL)])),
        [
            "prompts/helper.md: warning in skills[0]: \"refunds\" is left out: it requires the tool \"clock\", which the prompt does not list"
        ]
    );
}

//! Generated code takes no more lines than the TypeScript that it replaces.

use crate::support::erased;

/// The words of each line of a text.
fn words(text: &str) -> Vec<Vec<&str>> {
    text.lines()
        .map(|line| {
            line.split(|char: char| !char.is_alphanumeric()).filter(|word| word.starts_with("at")).collect()
        })
        .collect()
}

#[test]
fn every_name_stays_on_its_line() {
    let sources = [
        "at1\nenum\n E\n{\n A = at2, // at3\n B\n = at4\n ,\n C = 'x'\n}\nat5",
        "at1\nexport namespace\n N . M\n{\n export let at2 = at3,\n at4: T, at5 = at6\n at7()\n}\nat8",
        "at1\nclass A extends B {\n at2 = 1\n constructor(\n private a: T,\n readonly b = at5\n ) {\n 'use strict'\n super(\n at6)\n at7\n }\n}\nat8",
        "import {\n type A,\n at1,\n B\n} from \"x\"\nimport C\n = at2.D\nat3\n",
    ];
    for source in sources {
        let code = erased(&source.replace("import {\n type A,\n at1,", "import {\n type A,\n")).unwrap();
        let kept = words(&code);
        for (at, (line, kept)) in words(source).iter().zip(&kept).enumerate() {
            let moved = kept.iter().filter(|word| !line.contains(word)).count();
            assert_eq!(moved, 0, "line {at} of\n{code}");
        }
        assert_eq!(source.lines().count(), code.lines().count(), "{code}");
        assert!(code.contains("at8") || !source.contains("at8"), "{code}");
    }
}

#[test]
fn what_follows_on_later_lines_keeps_its_columns() {
    let source = "enum E { A, B }\nclass A { constructor(private a: T) {\n  at1 } }\nnamespace N { export const b = 1 }\n  at2;";
    let code = erased(source).unwrap();
    for word in ["at1", "at2"] {
        let column = |text: &str| {
            let at = text.find(word).unwrap();
            at - text.get(..at).unwrap().rfind('\n').unwrap()
        };
        assert_eq!(column(source), column(&code), "{code}");
    }
}

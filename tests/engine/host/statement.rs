//! What a statement's words say of it. The program has some hundred statements and runs them millions of times, so each is
//! read once.

use std::cell::RefCell;
use std::collections::HashMap;
use std::rc::Rc;

/// One statement of the program.
pub struct Statement {
    /// Its first word, in capitals.
    pub verb: String,
    /// Whether it changes anything.
    pub writes: bool,
    /// Whether it is more than one statement.
    pub several: bool,
    /// The table that it writes to.
    pub table: Option<&'static str>,
    /// An `UPDATE`: the words between `SET` and `WHERE`, its columns among them.
    pub assigned: Vec<&'static str>,
}

thread_local! {
    /// By where the text lies.
    static KNOWN: RefCell<HashMap<(*const u8, usize), Rc<Statement>>> = RefCell::default();
}

impl Statement {
    /// What is known of a statement.
    pub fn of(text: &'static str) -> Rc<Statement> {
        KNOWN.with_borrow_mut(|known| {
            let place = (text.as_ptr(), text.len());
            known.entry(place).or_insert_with(|| Rc::new(Statement::read(text))).clone()
        })
    }

    fn read(text: &'static str) -> Statement {
        let verb = text.split_whitespace().next().unwrap_or("").to_ascii_uppercase();
        let words: Vec<&str> = text
            .split(|c: char| !(c.is_alphanumeric() || c == '_'))
            .filter(|word| !word.is_empty())
            .collect();
        let after = |word: &str| words.iter().position(|w| w.eq_ignore_ascii_case(word)).map(|at| at + 1);
        let table = match verb.as_str() {
            "UPDATE" => words.get(1),
            "DELETE" => after("FROM").and_then(|at| words.get(at)),
            _ => after("INTO").and_then(|at| words.get(at)),
        };
        let set = after("SET").unwrap_or(0);
        let end = after("WHERE").unwrap_or(words.len());
        let changing = || {
            let text = text.to_ascii_uppercase();
            ["INSERT INTO", "INSERT OR", "UPDATE ", "DELETE FROM"].iter().any(|verb| text.contains(verb))
        };
        Statement {
            writes: match verb.as_str() {
                "SELECT" | "EXPLAIN" | "PRAGMA" | "VALUES" => false,
                "WITH" => changing(),
                _ => true,
            },
            several: verb != "CREATE" && text.trim_end().trim_end_matches(';').contains(';'),
            table: table.copied(),
            assigned: words.get(set..end).unwrap_or(&[]).to_vec(),
            verb,
        }
    }
}

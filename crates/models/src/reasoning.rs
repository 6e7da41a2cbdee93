//! The amount of reasoning (spec §4.2, §5.3), and parts of a reply that go back to its provider.

use serde::{Deserialize, Serialize};

use bobbin_definitions::definitions::model::Capabilities;
use bobbin_definitions::definitions::opaque::Opaque;
use bobbin_definitions::definitions::prompt::{Effort, Reasoning as Requested};
use bobbin_definitions::tokens::tokens;

/// The requested amount of reasoning. Each provider has its own format for it.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Reasoning {
    /// From 0 to 100.
    pub level: Option<u8>,
    /// The model's own name for the level, from its definition.
    pub word: Option<String>,
    /// Maximum tokens.
    pub max_tokens: Option<u64>,
    /// Whether reasoning is hidden: its text is neither streamed nor stored.
    pub exclude: bool,
}

impl Reasoning {
    /// The reasoning for a prompt's request. Its level becomes the name of the nearest level that the model
    /// declares; of two equally near ones, the lower. A level that is declared `null` requests none.
    pub fn of(wanted: Option<&Requested>, capabilities: &Capabilities) -> Reasoning {
        let Some(wanted) = wanted else { return Reasoning::default() };
        let mut asked = Reasoning {
            level: wanted.effort.map(Effort::level),
            word: None,
            max_tokens: wanted.max_tokens,
            exclude: wanted.exclude,
        };
        let levels = capabilities.reasoning_levels.iter();
        let levels = levels.filter_map(|(level, word)| Some((level.parse::<u8>().ok()?, word)));
        let nearest = asked.level.and_then(|level| levels.min_by_key(|(at, _)| (at.abs_diff(level), *at)));
        match nearest {
            Some((_, Some(word))) => asked.word = Some(word.clone()),
            Some((_, None)) => asked.level = None,
            None => {}
        }
        asked
    }

    /// Whether reasoning is requested.
    pub fn is_on(&self) -> bool {
        self.level.is_some() || self.max_tokens.is_some()
    }
}

/// A piece of a reply that goes back to its provider unchanged, and its position.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct PositionedBlock {
    /// Bytes of the reply's text before the piece.
    pub text: usize,
    /// Number of calls before the piece.
    pub calls: usize,
    /// The piece.
    pub block: Opaque,
}

/// Prefix of a piece that holds a field of the message itself.
pub const FIELD: &str = r#"{"message":"#;

impl PositionedBlock {
    /// Whether it is a field of the message, which goes back with the calls of every turn. It is text, so it
    /// counts as tokens.
    pub fn is_field(&self) -> bool {
        self.block.get().starts_with(FIELD)
    }

    /// Estimated number of tokens.
    pub fn tokens(&self) -> usize {
        if self.is_field() { tokens(self.block.get()) } else { 0 }
    }
}

/// All such pieces of a reply.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub enum Payload {
    /// In order; most replies have none.
    Blocks(Vec<PositionedBlock>),
    /// Larger than [`PAYLOAD_BYTES`](bobbin_definitions::limits::PAYLOAD_BYTES), with its size in bytes; not kept.
    TooLarge(usize),
    /// None.
    #[default]
    None,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_effort_becomes_the_nearest_word() {
        let levels = |json: &str| {
            bobbin_definitions::json::from_str::<Capabilities>(&format!(r#"{{"reasoningLevels":{json}}}"#))
                .unwrap()
        };
        for (declared, effort, level, word) in [
            ("{}", Effort::Medium, Some(66), None),
            (r#"{"0":null,"20":"brief","70":"long","100":"max"}"#, Effort::Low, Some(33), Some("brief")),
            (r#"{"0":null,"20":"brief","70":"long","100":"max"}"#, Effort::Medium, Some(66), Some("long")),
            (r#"{"0":null,"20":"brief","70":"long","100":"max"}"#, Effort::High, Some(100), Some("max")),
            (r#"{"32":"under","34":"over"}"#, Effort::Low, Some(33), Some("under")),
            (r#"{"0":null,"90":"x"}"#, Effort::Low, None, None),
        ] {
            let wanted = Requested { effort: Some(effort), ..Requested::default() };
            let asked = Reasoning::of(Some(&wanted), &levels(declared));
            assert_eq!((asked.level, asked.word.as_deref()), (level, word), "{declared} {effort:?}");
            assert_eq!(asked.is_on(), level.is_some());
        }
        assert!(!Reasoning::of(None, &Capabilities::default()).is_on());
        let tokens = Requested { max_tokens: Some(2000), ..Requested::default() };
        assert!(Reasoning::of(Some(&tokens), &Capabilities::default()).is_on());
    }
}

//! Which runtime made a catalog, and which this one takes: those of its major version that are not newer than itself.
//!
//! Storage goes forward only, so a thread that a newer runtime has worked on is not for an older one; and a catalog of an
//! older runtime means what it meant then.

use std::fmt;

/// The version of this runtime.
pub const VERSION: &str = env!("CARGO_PKG_VERSION");

/// Why a catalog is not taken.
#[derive(Debug, PartialEq, Eq)]
pub enum Refusal {
    /// It is of a runtime that is newer than this one.
    Newer(String),
    /// It is of another major version, which is older.
    OldMajor(String),
    /// It names no version.
    Unknown(String),
}

impl fmt::Display for Refusal {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Refusal::Newer(made) => write!(
                f,
                "they were compiled by Bobbin {made}, and this Worker is the older {VERSION}: deploy the Worker of that version, too"
            ),
            Refusal::OldMajor(made) => write!(
                f,
                "they were compiled by Bobbin {made}, and this Worker is {VERSION}: compile them again with that version"
            ),
            Refusal::Unknown(made) => write!(f, "\"{made}\" is no version of Bobbin"),
        }
    }
}

/// Whether this runtime takes what the runtime `made` compiled. One that says nothing is of before versions were noted.
///
/// # Errors
/// Why not.
pub fn takes(made: &str) -> Result<(), Refusal> {
    judge(made, VERSION)
}

fn judge(made: &str, ours: &str) -> Result<(), Refusal> {
    if made.is_empty() {
        return Ok(());
    }
    let (Some(theirs), Some(ours)) = (parts(made), parts(ours)) else {
        return Err(Refusal::Unknown(made.to_owned()));
    };
    match theirs {
        theirs if theirs > ours => Err(Refusal::Newer(made.to_owned())),
        (major, ..) if major < ours.0 => Err(Refusal::OldMajor(made.to_owned())),
        _ => Ok(()),
    }
}

/// Major, minor, patch; what comes before a release counts as the release.
fn parts(version: &str) -> Option<(u64, u64, u64)> {
    let release = version.split(['-', '+']).next()?;
    let mut numbers = release.split('.').map(|part| part.parse().ok());
    let parts = (numbers.next()??, numbers.next()??, numbers.next()??);
    numbers.next().is_none().then_some(parts)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_older_and_of_the_same_major_version_is_taken() {
        for (made, ours) in [
            ("0.1.0", "0.1.0"),
            ("0.1.0", "0.2.0"),
            ("1.4.9", "1.10.0"),
            ("2.0.0-rc.1", "2.0.0"),
            ("", "3.0.0"),
        ] {
            assert_eq!(judge(made, ours), Ok(()), "{made} by {ours}");
        }
        for (made, ours) in [("0.2.0", "0.1.9"), ("1.10.0", "1.9.9"), ("2.0.0", "1.9.9"), ("1.0.1", "1.0.0")]
        {
            assert_eq!(judge(made, ours), Err(Refusal::Newer(made.to_owned())), "{made} by {ours}");
        }
        assert_eq!(judge("1.9.0", "2.0.0"), Err(Refusal::OldMajor("1.9.0".to_owned())));
        for made in ["next", "1.2", "1.2.3.4", "1.x.0"] {
            assert_eq!(judge(made, "1.0.0"), Err(Refusal::Unknown(made.to_owned())));
        }
        assert_eq!(takes(VERSION), Ok(()));
    }

    #[test]
    fn a_catalog_of_a_newer_runtime_is_refused_by_its_version_whatever_else_is_in_it() {
        use crate::definitions::catalog::Catalog;
        let refused = |json: &str| Catalog::from_json(json).unwrap_err().to_string();
        assert!(
            refused(r#"{ "runtime": "99.0.0", "ofTomorrow": 1 }"#)
                .starts_with("they were compiled by Bobbin 99.0.0")
        );
        assert!(refused(r#"{ "runtime": "99.0.0" }"#).starts_with("they were compiled by Bobbin 99.0.0"));
        assert!(refused(r#"{ "runtime": "0.0.1", "ofTomorrow": 1 }"#).contains("ofTomorrow"));
        let ours = format!(r#"{{ "runtime": "{VERSION}" }}"#);
        assert_eq!(Catalog::from_json(&ours).unwrap().runtime, VERSION);
    }
}

//! The protocols of other systems that a deployment offers.

/// A protocol.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Surface {
    /// The protocol of the AI SDK: `/api/chat`, `/api/agents/:agent/chat`.
    Chat,
    /// The protocol of OpenAI: `/v1`.
    OpenAi,
    /// `/mcp`.
    Mcp,
    /// `/api/agents/:agent/ag-ui`.
    AgUi,
    /// The page `/inspector`.
    Inspector,
}

impl Surface {
    /// All protocols.
    pub const ALL: [Surface; 5] =
        [Surface::Chat, Surface::OpenAi, Surface::Mcp, Surface::AgUi, Surface::Inspector];

    /// The name in `BOBBIN_SURFACES`.
    pub const fn as_str(self) -> &'static str {
        match self {
            Surface::Chat => "chat",
            Surface::OpenAi => "openai",
            Surface::Mcp => "mcp",
            Surface::AgUi => "ag-ui",
            Surface::Inspector => "inspector",
        }
    }
}

/// The protocols of a deployment.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Surfaces(Vec<Surface>);

impl Surfaces {
    /// Parses `BOBBIN_SURFACES`, a list separated by commas. The default is `chat` and `openai`; on a
    /// developer's machine, all.
    ///
    /// # Errors
    /// An unknown name.
    pub fn parse(names: Option<&str>, dev: bool) -> Result<Surfaces, String> {
        let Some(names) = names else {
            return Ok(Surfaces(if dev {
                Surface::ALL.to_vec()
            } else {
                vec![Surface::Chat, Surface::OpenAi]
            }));
        };
        let named = names.split(',').map(str::trim).filter(|name| !name.is_empty());
        let found = named.map(|name| {
            let known = Surface::ALL.into_iter().find(|surface| surface.as_str() == name);
            let all = Surface::ALL.map(Surface::as_str).join(", ");
            known.ok_or_else(|| format!("there is no surface “{name}”; there are {all}"))
        });
        found.collect::<Result<Vec<_>, _>>().map(Surfaces)
    }

    /// Whether the deployment offers the protocol.
    pub fn has(&self, surface: Surface) -> bool {
        self.0.contains(&surface)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_deployment_says_which() {
        let has = |names: Option<&str>, dev: bool| {
            let surfaces = Surfaces::parse(names, dev).unwrap();
            Surface::ALL.map(|surface| surfaces.has(surface))
        };
        assert_eq!(has(None, false), [true, true, false, false, false]);
        assert_eq!(has(None, true), [true; 5]);
        assert_eq!(has(Some(""), true), [false; 5]);
        assert_eq!(has(Some("mcp, ag-ui"), false), [false, false, true, true, false]);
        assert!(Surfaces::parse(Some("chats"), false).unwrap_err().contains("chat, openai"));
    }
}

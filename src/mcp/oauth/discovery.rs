//! Who gives tokens for a server (RFC 9728), and what that authorization server says of itself (RFC 8414, OpenID Connect
//! Discovery 1.0).

use serde::Deserialize;
use serde_json::Value;

use crate::mcp::oauth::Challenge;

/// Authorization servers of one resource that are looked at.
const ISSUERS: usize = 8;

/// What a server says of itself as a resource.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Resource {
    /// What tokens are asked for.
    pub(crate) resource: String,
    /// Who gives them.
    pub(crate) issuers: Vec<String>,
    /// What tokens can allow, as far as it says.
    pub(crate) scopes: Vec<String>,
}

/// An authorization server, as it describes itself.
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(default)]
pub(crate) struct Issuer {
    pub(crate) issuer: String,
    pub(crate) token_endpoint: String,
    pub(crate) token_endpoint_auth_methods_supported: Option<Vec<String>>,
    /// Where people sign in.
    pub(crate) authorization_endpoint: String,
    /// Where clients register themselves.
    pub(crate) registration_endpoint: Option<String>,
    pub(crate) code_challenge_methods_supported: Vec<String>,
    pub(crate) scopes_supported: Vec<String>,
    /// Whether the id of a client may be the address of its description.
    pub(crate) client_id_metadata_document_supported: bool,
    /// Whether whoever comes back from it says who it is (RFC 9207).
    pub(crate) authorization_response_iss_parameter_supported: bool,
}

/// Where a server says who gives tokens for it, the likeliest first.
pub(crate) fn resource_addresses(server: &str, challenge: &Challenge) -> Vec<String> {
    if let Some(address) = &challenge.resource_metadata {
        return vec![address.clone()];
    }
    let (origin, path) = split(server);
    let mut addresses = vec![format!("{origin}/.well-known/oauth-protected-resource{path}")];
    if !path.is_empty() {
        addresses.push(format!("{origin}/.well-known/oauth-protected-resource"));
    }
    addresses
}

/// What it says there.
///
/// # Errors
/// It is not of this server, or not what it should be: why, without a full stop.
pub(crate) fn resource(server: &str, body: &[u8]) -> Result<Resource, String> {
    let said: Value = crate::json::from_slice(body).map_err(|_| "it is no JSON".to_owned())?;
    let resource = said.get("resource").and_then(Value::as_str).unwrap_or_default();
    if !is_of(server, resource) {
        return Err("it speaks of another resource".to_owned());
    }
    let texts = |field: &str| -> Vec<String> {
        let listed = said.get(field).and_then(Value::as_array).into_iter().flatten();
        listed.filter_map(Value::as_str).map(str::to_owned).collect()
    };
    let mut issuers = texts("authorization_servers");
    issuers.truncate(ISSUERS);
    if issuers.is_empty() {
        return Err("it names no authorization server".to_owned());
    }
    Ok(Resource { resource: resource.to_owned(), issuers, scopes: texts("scopes_supported") })
}

/// Whether an address is that of a server, or of what the server is a part of.
fn is_of(server: &str, resource: &str) -> bool {
    let ((origin, path), (its_origin, its_path)) = (split(server), split(resource));
    let within = path.strip_prefix(its_path).is_some_and(|rest| rest.is_empty() || rest.starts_with('/'));
    !origin.is_empty() && origin.eq_ignore_ascii_case(its_origin) && within
}

/// Where an authorization server describes itself, in the order in which that is asked.
pub(crate) fn issuer_addresses(issuer: &str) -> Vec<String> {
    let (origin, path) = split(issuer);
    let mut addresses = vec![
        format!("{origin}/.well-known/oauth-authorization-server{path}"),
        format!("{origin}/.well-known/openid-configuration{path}"),
    ];
    if !path.is_empty() {
        addresses.push(format!("{origin}{path}/.well-known/openid-configuration"));
    }
    addresses
}

/// What it says there.
///
/// # Errors
/// It speaks of another issuer, or is not what it should be: why, without a full stop.
pub(crate) fn issuer(issuer: &str, body: &[u8]) -> Result<Issuer, String> {
    let said: Issuer = crate::json::from_slice(body).map_err(|_| "it is no description of one".to_owned())?;
    if said.issuer != issuer {
        return Err("it speaks of another issuer".to_owned());
    }
    if said.token_endpoint.is_empty() {
        return Err("it does not say where it gives tokens".to_owned());
    }
    Ok(said)
}

/// Origin of an address, and its path without a slash at the end, query and fragment.
fn split(address: &str) -> (&str, &str) {
    let start = address.find("://").map_or(address.len(), |at| at + 3);
    let authority = address.get(start..).unwrap_or_default();
    let end = start + authority.find(['/', '?', '#', '\\']).unwrap_or(authority.len());
    let (origin, rest) = address.split_at_checked(end).unwrap_or((address, ""));
    let path = rest.split(['?', '#']).next().unwrap_or_default();
    (origin, path.trim_end_matches('/'))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::json;

    #[test]
    fn documents_are_where_the_standards_put_them() {
        let none = Challenge::default();
        assert_eq!(
            resource_addresses("https://a.example/public/mcp?x=1", &none),
            [
                "https://a.example/.well-known/oauth-protected-resource/public/mcp",
                "https://a.example/.well-known/oauth-protected-resource"
            ]
        );
        assert_eq!(
            resource_addresses("https://a.example/", &none),
            ["https://a.example/.well-known/oauth-protected-resource"]
        );
        let told = Challenge { resource_metadata: Some("https://m.example/x".into()), ..none };
        assert_eq!(resource_addresses("https://a.example/mcp", &told), ["https://m.example/x"]);
        assert_eq!(
            issuer_addresses("https://auth.example/tenant1"),
            [
                "https://auth.example/.well-known/oauth-authorization-server/tenant1",
                "https://auth.example/.well-known/openid-configuration/tenant1",
                "https://auth.example/tenant1/.well-known/openid-configuration",
            ]
        );
        assert_eq!(
            issuer_addresses("https://auth.example"),
            [
                "https://auth.example/.well-known/oauth-authorization-server",
                "https://auth.example/.well-known/openid-configuration"
            ]
        );
    }

    #[test]
    fn a_document_of_somebody_else_is_refused() {
        let server = "https://a.example/mcp/one";
        let of = |resource: &str| {
            let body = json!({ "resource": resource, "authorization_servers": ["https://auth.example"] });
            resource_of(server, &body).is_ok()
        };
        for (fine, resource) in [
            (true, "https://a.example/mcp/one"),
            (true, "https://a.example/mcp/"),
            (true, "https://A.example"),
            (false, "https://a.example/mcp/on"),
            (false, "https://a.example/mcp/one/two"),
            (false, "https://a.example.evil.example/mcp/one"),
            (false, "http://a.example/mcp/one"),
            (false, ""),
        ] {
            assert_eq!(of(resource), fine, "{resource}");
        }
        assert!(
            resource_of(server, &json!({ "resource": server }))
                .unwrap_err()
                .contains("no authorization server")
        );
        let body =
            json!({ "issuer": "https://honest.example", "token_endpoint": "https://honest.example/t" })
                .to_string();
        assert!(issuer("https://honest.example", body.as_bytes()).is_ok());
        for other in ["https://evil.example", "https://honest.example/", "https://HONEST.example"] {
            assert!(issuer(other, body.as_bytes()).unwrap_err().contains("another issuer"), "{other}");
        }
        assert!(issuer("x", b"[]").is_err());
        assert!(issuer("x", br#"{"issuer":"x"}"#).is_err());
    }

    fn resource_of(server: &str, body: &Value) -> Result<Resource, String> {
        resource(server, body.to_string().as_bytes())
    }
}

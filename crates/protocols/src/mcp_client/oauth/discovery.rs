//! The authorization server of a resource (RFC 9728), and its metadata (RFC 8414, OpenID Connect Discovery
//! 1.0).

use serde::Deserialize;
use serde_json::Value;

use crate::mcp_client::oauth::Challenge;

/// Maximum number of authorization servers that are tried for one resource.
const ISSUERS: usize = 8;

/// A server's metadata as a protected resource.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Resource {
    /// The resource identifier for tokens.
    pub resource: String,
    /// Its authorization servers.
    pub issuers: Vec<String>,
    /// The scopes that it lists.
    pub scopes: Vec<String>,
}

/// The metadata of an authorization server.
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(default)]
pub struct Issuer {
    /// Its identifier, a URL.
    pub issuer: String,
    /// The URL that issues tokens.
    pub token_endpoint: String,
    pub(super) token_endpoint_auth_methods_supported: Option<Vec<String>>,
    /// Where users sign in.
    pub authorization_endpoint: String,
    /// Where clients register.
    pub registration_endpoint: Option<String>,
    pub(super) code_challenge_methods_supported: Vec<String>,
    pub(super) scopes_supported: Vec<String>,
    /// Whether a client id may be the URL of the client's metadata.
    pub client_id_metadata_document_supported: bool,
    /// Whether its redirects contain its issuer (RFC 9207).
    pub authorization_response_iss_parameter_supported: bool,
}

/// URLs of a server's resource metadata, the most likely first.
pub fn resource_addresses(server: &str, challenge: &Challenge) -> Vec<String> {
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

/// Parses resource metadata.
///
/// # Errors
/// It belongs to another server, or is invalid; without a full stop.
pub fn resource(server: &str, body: &[u8]) -> Result<Resource, String> {
    let said: Value = bobbin_definitions::json::from_slice(body).map_err(|_| "it is no JSON".to_owned())?;
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

/// Whether a resource is this server, or contains it.
fn is_of(server: &str, resource: &str) -> bool {
    let ((origin, path), (its_origin, its_path)) = (split(server), split(resource));
    let within = path.strip_prefix(its_path).is_some_and(|rest| rest.is_empty() || rest.starts_with('/'));
    !origin.is_empty() && origin.eq_ignore_ascii_case(its_origin) && within
}

/// URLs of an authorization server's metadata, in the order in which they are tried.
pub fn issuer_addresses(issuer: &str) -> Vec<String> {
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

/// Parses the metadata of an authorization server.
///
/// # Errors
/// It belongs to another issuer, or is invalid; without a full stop.
pub fn issuer(issuer: &str, body: &[u8]) -> Result<Issuer, String> {
    let said: Issuer =
        bobbin_definitions::json::from_slice(body).map_err(|_| "it is no description of one".to_owned())?;
    if said.issuer != issuer {
        return Err("it speaks of another issuer".to_owned());
    }
    if said.token_endpoint.is_empty() {
        return Err("it does not say where it gives tokens".to_owned());
    }
    Ok(said)
}

/// The origin of a URL, and its path without a trailing slash, query and fragment.
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
    use bobbin_definitions::json;

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

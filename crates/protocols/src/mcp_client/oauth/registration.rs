//! This deployment's metadata as an OAuth client. Authorization servers fetch it as a document whose URL is
//! the client id (Client ID Metadata Documents). At servers without support for that, the deployment
//! registers (RFC 7591).

use serde_json::Value;

use crate::mcp_client::oauth::discovery::Issuer;
use crate::mcp_client::oauth::grant::Client;
use crate::responses::mcp::ClientMetadata;
use bobbin_definitions::definitions::mcp::is_loopback;

/// The variable with the public URL of this deployment. Much of this work has no request, and a client could
/// send any host.
pub const PUBLIC_URL: &str = "BOBBIN_PUBLIC_URL";
/// Path of the document.
const DOCUMENT: &str = "/.well-known/bobbin-client.json";
/// Path of the callback.
const CALLBACK: &str = "/api/oauth/callback";
/// Maximum bytes of a client's id, and of its secret.
const GIVEN_BYTES: usize = 2 << 10;

/// The deployment's public scheme and host, from [`PUBLIC_URL`].
///
/// # Errors
/// The reason why it is missing or invalid, without a full stop.
pub fn public_origin(said: &str) -> Result<String, String> {
    let origin = said.trim().trim_end_matches('/');
    if origin.is_empty() {
        return Err(format!("{PUBLIC_URL} is not set, so that no browser would find its way back"));
    }
    let (scheme, rest) = origin.split_once("://").unwrap_or_default();
    let is_host = !rest.is_empty() && rest.bytes().all(|byte| byte.is_ascii_graphic());
    let is_origin = is_host && !rest.contains(['/', '?', '#', '@', '\\']);
    if is_origin && (scheme == "https" || scheme == "http" && is_loopback(origin)) {
        return Ok(origin.to_owned());
    }
    Err(format!("{PUBLIC_URL} is not the address of this deployment, such as https://bobbin.example.com"))
}

/// The client id of a deployment: the URL of its metadata.
pub fn document_address(origin: &str) -> String {
    format!("{origin}{DOCUMENT}")
}

/// The callback URL of a deployment.
pub fn callback_address(origin: &str) -> String {
    format!("{origin}{CALLBACK}")
}

/// The metadata of a deployment. `method`: its authentication at the token endpoint.
pub fn description<'a>(origin: &'a str, method: &'a str) -> ClientMetadata<'a> {
    ClientMetadata {
        client_name: "Bobbin",
        client_uri: origin,
        redirect_uris: vec![callback_address(origin)],
        grant_types: &["authorization_code", "refresh_token"],
        response_types: &["code"],
        token_endpoint_auth_method: method,
        application_type: if origin.starts_with("https://") { "web" } else { "native" },
    }
}

/// Authentication methods, in order of preference.
const METHODS: [&str; 3] = ["none", "client_secret_basic", "client_secret_post"];

/// The authentication method for a registration: without a secret if possible.
pub fn method_for(issuer: &Issuer) -> Option<&'static str> {
    // Without a list of methods only the header is allowed (RFC 8414, 2).
    let Some(methods) = &issuer.token_endpoint_auth_methods_supported else {
        return Some("client_secret_basic");
    };
    METHODS.into_iter().find(|known| methods.iter().any(|method| method == known))
}

/// Parses the response to a registration.
///
/// # Errors
/// The reason why it failed, without a full stop.
pub fn registered(
    issuer: &Issuer,
    (resource, origin): (&str, &str),
    method: &str,
    (status, body): (u16, &[u8]),
) -> Result<Client, String> {
    if status != 200 && status != 201 {
        return Err(format!("it registers no client (http {status})"));
    }
    let said: Value = bobbin_definitions::json::from_slice(body).unwrap_or_default();
    let text = |field: &str| {
        let text = said.get(field).and_then(Value::as_str);
        text.filter(|text| (1..=GIVEN_BYTES).contains(&text.len()) && !text.contains(char::is_control))
    };
    let id = text("client_id").ok_or("its answer to a registration names no client")?;
    let method = text("token_endpoint_auth_method").unwrap_or(method);
    let secret = text("client_secret").filter(|_| method != "none").map(str::to_owned);
    if !METHODS.contains(&method) || (method == "none") != secret.is_none() {
        return Err("it registers clients in a way that is not known here".to_owned());
    }
    let client = Client::of(issuer, id.to_owned(), resource.to_owned());
    let redirect = Some(callback_address(origin));
    Ok(Client { in_form: method == "client_secret_post", secret, redirect, ..client })
}

#[cfg(test)]
mod tests {
    use bobbin_definitions::json;

    use super::*;

    fn issuer(methods: Option<&[&str]>) -> Issuer {
        let methods = methods.map(|methods| methods.iter().map(|method| (*method).to_owned()).collect());
        Issuer { token_endpoint_auth_methods_supported: methods, ..Issuer::default() }
    }

    #[test]
    fn a_secret_is_only_taken_where_one_is_needed() {
        for (methods, expected) in [
            (None, Some("client_secret_basic")),
            (Some(["client_secret_post", "none"].as_slice()), Some("none")),
            (Some(&["client_secret_post", "client_secret_basic"]), Some("client_secret_basic")),
            (Some(&["client_secret_post"]), Some("client_secret_post")),
            (Some(&["private_key_jwt"]), None),
        ] {
            assert_eq!(method_for(&issuer(methods)), expected);
        }
    }

    #[test]
    fn a_registration_is_read_or_says_why_not() {
        let read = |method: &str, status: u16, body: Value| {
            let at = ("https://a.example", "https://b.example");
            registered(&issuer(None), at, method, (status, body.to_string().as_bytes()))
                .map(|client| (client.id, client.secret, client.in_form))
        };
        let (id, secret) = ("c".to_owned(), Some("s".to_owned()));
        let said = json!({ "client_id": "c", "client_secret": "s" });
        assert_eq!(read("none", 201, said.clone()), Ok((id.clone(), None, false)));
        assert_eq!(read("client_secret_basic", 201, said.clone()), Ok((id.clone(), secret.clone(), false)));
        let post = json!({ "client_id": "c", "client_secret": "s", "token_endpoint_auth_method": "client_secret_post" });
        assert_eq!(read("none", 200, post), Ok((id, secret, true)));
        for (status, body) in [
            (400, said),
            (201, json!({})),
            (201, json!({ "client_id": "c\n" })),
            (201, json!({ "client_id": "c" })),
            (201, json!({ "client_id": "c", "token_endpoint_auth_method": "private_key_jwt" })),
        ] {
            assert!(read("client_secret_basic", status, body.clone()).is_err(), "{body}");
        }
    }

    #[test]
    fn a_deployment_says_where_it_is() {
        for fine in ["https://b.example", " https://b.example/ ", "http://127.0.0.1:8787", "http://localhost"]
        {
            assert_eq!(public_origin(fine), Ok(fine.trim().trim_end_matches('/').to_owned()));
        }
        for wrong in [
            "",
            "b.example",
            "http://b.example",
            "https://b.example/x",
            "https://",
            "ftp://b.example",
            "https://u@b.example",
        ] {
            assert!(public_origin(wrong).is_err(), "{wrong}");
        }
        let said = description("https://b.example", "none");
        assert_eq!(said.redirect_uris, ["https://b.example/api/oauth/callback"]);
        assert_eq!(
            (said.application_type, description("http://127.0.0.1:1", "none").application_type),
            ("web", "native")
        );
        assert_eq!(document_address("https://b.example"), "https://b.example/.well-known/bobbin-client.json");
    }
}

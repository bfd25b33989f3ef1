//! AWS request signatures, version 4.
//!
//! Pure: the time is a parameter. A signature covers method, path, query, body
//! and the relevant headers, and is valid for a few minutes around its time,
//! so every attempt is signed anew. Not for S3, which signs paths differently.
//!
//! <https://docs.aws.amazon.com/IAM/latest/UserGuide/reference_sigv-create-signed-request.html>

use reqwest::Url;
use reqwest::header::{HeaderMap, HeaderValue, InvalidHeaderValue};
use ring::{digest, hmac};

use super::address::escape_unreserved;
use super::credential::AwsKeys;

/// The scope of a signature.
#[derive(Debug, Clone, Copy)]
pub(in crate::ai) struct Scope<'a> {
    pub(in crate::ai) region: &'a str,
    /// The service's signing name, which can differ from the name in its address.
    pub(in crate::ai) service: &'a str,
}

/// Signs a `POST` request: sets its date, the session token if there is one, and
/// `authorization`. Signing again replaces the earlier signature.
///
/// # Errors
/// If a key contains characters that are invalid in headers.
pub(in crate::ai) fn sign_post(
    keys: &AwsKeys,
    scope: Scope<'_>,
    url: &Url,
    headers: &mut HeaderMap,
    body: &[u8],
    now_ms: u64,
) -> Result<(), InvalidHeaderValue> {
    let stamp = stamp(now_ms);
    headers.insert("x-amz-date", HeaderValue::from_str(&stamp)?);
    if let Some(token) = &keys.session_token {
        headers.insert("x-amz-security-token", secret(token)?);
    }
    let mut signed = vec![("host".to_owned(), host(url))];
    signed.extend(headers.iter().filter_map(|(name, value)| {
        let name = name.as_str();
        let counts = name == "content-type" || name.starts_with("x-amz-");
        counts.then(|| (name.to_owned(), String::from_utf8_lossy(value.as_bytes()).into_owned()))
    }));
    let query = url.query_pairs().map(|(name, value)| (name.into_owned(), value.into_owned())).collect();
    let request = Signable { method: "POST", path: url.path(), query, headers: signed, body };
    headers.insert("authorization", secret(&authorization(keys, scope, request, &stamp))?);
    Ok(())
}

fn secret(text: &str) -> Result<HeaderValue, InvalidHeaderValue> {
    let mut value = HeaderValue::from_str(text)?;
    value.set_sensitive(true);
    Ok(value)
}

/// The `host` header that the client sends: without the scheme's default port.
fn host(url: &Url) -> String {
    let host = url.host_str().unwrap_or_default();
    url.port().map_or_else(|| host.to_owned(), |port| format!("{host}:{port}"))
}

/// `20150830T123600Z`.
fn stamp(now_ms: u64) -> String {
    let now = i64::try_from(now_ms).ok().and_then(|ms| jiff::Timestamp::from_millisecond(ms).ok());
    now.unwrap_or_default().strftime("%Y%m%dT%H%M%SZ").to_string()
}

/// The signed parts of a request.
struct Signable<'a> {
    method: &'static str,
    /// As sent.
    path: &'a str,
    /// Not escaped.
    query: Vec<(String, String)>,
    /// Names in lower case.
    headers: Vec<(String, String)>,
    body: &'a [u8],
}

/// The value of the `authorization` header.
fn authorization(keys: &AwsKeys, scope: Scope<'_>, request: Signable<'_>, stamp: &str) -> String {
    let Scope { region, service } = scope;
    let date = stamp.get(..8).unwrap_or(stamp);
    let range = format!("{date}/{region}/{service}/aws4_request");
    let (canonical, names) = canonical(request);
    let to_sign = format!("AWS4-HMAC-SHA256\n{stamp}\n{range}\n{}", sha256(canonical.as_bytes()));
    let first = format!("AWS4{}", keys.secret_access_key).into_bytes();
    let key = [date, region, service, "aws4_request"]
        .iter()
        .fold(first, |key, part| hmac_sha256(&key, part.as_bytes()));
    let signature = hex(&hmac_sha256(&key, to_sign.as_bytes()));
    let id = &keys.access_key_id;
    format!("AWS4-HMAC-SHA256 Credential={id}/{range}, SignedHeaders={names}, Signature={signature}")
}

/// The canonical form of the request, which both sides can compute, and the names
/// of the headers in it.
fn canonical(mut request: Signable<'_>) -> (String, String) {
    // Values of the same name keep their order.
    request.headers.sort_by(|(one, _), (other, _)| one.cmp(other));
    let mut lines = String::new();
    let mut names: Vec<&str> = Vec::new();
    for (name, value) in &request.headers {
        let value = value.split_ascii_whitespace().collect::<Vec<&str>>().join(" ");
        if names.last() == Some(&name.as_str()) {
            lines.pop();
            lines.push(',');
        } else {
            names.push(name);
            lines.push_str(name);
            lines.push(':');
        }
        lines.push_str(&value);
        lines.push('\n');
    }
    let names = names.join(";");
    let mut query: Vec<(String, String)> = request
        .query
        .iter()
        .map(|(name, value)| (escape_unreserved(name), escape_unreserved(value)))
        .collect();
    query.sort_unstable();
    let query: Vec<String> = query.into_iter().map(|(name, value)| format!("{name}={value}")).collect();
    let (method, path, query) = (request.method, canonical_path(request.path), query.join("&"));
    let body = sha256(request.body);
    (format!("{method}\n{path}\n{query}\n{lines}\n{names}\n{body}"), names)
}

/// The path without empty and dot segments, each segment escaped once more than
/// it is sent.
fn canonical_path(path: &str) -> String {
    let mut segments: Vec<&str> = Vec::new();
    for segment in path.split('/') {
        match segment {
            "" | "." => {}
            ".." => drop(segments.pop()),
            other => segments.push(other),
        }
    }
    let mut canonical: String =
        segments.iter().map(|segment| format!("/{}", escape_unreserved(segment))).collect();
    if segments.is_empty() || path.ends_with('/') {
        canonical.push('/');
    }
    canonical
}

fn hmac_sha256(key: &[u8], message: &[u8]) -> Vec<u8> {
    hmac::sign(&hmac::Key::new(hmac::HMAC_SHA256, key), message).as_ref().to_vec()
}

fn sha256(bytes: &[u8]) -> String {
    hex(digest::digest(&digest::SHA256, bytes).as_ref())
}

fn hex(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Time, keys and scope of Amazon's public test suite for version 4.
    const STAMP_MS: u64 = 1_440_938_160_000;
    const SCOPE: Scope<'_> = Scope { region: "us-east-1", service: "service" };
    const TOKEN: &str = "AQoDYXdzEPT//////////wEXAMPLEtc764bNrC9SAPBSM22wDOk4x4HIZ8j4FZTwdQWLWsKWHGBuFqwAeMicRXmxfpSPfIeoIYRqTflfKD8YUuwthAx7mSEI/qkPpKPi/kMcGdQrmGdeehM4IC1NtBmUpp2wUE8phUZampKsburEDy0KPkyQDYwT7WZ0wq5VSXDvp75YU9HFvlRd8Tx6q6fE8YQcHNVXAkiY9q6d+xo0rKwT38xVqr7ZD0u0iPPkUL64lIZbqBAz+scqKmlzm8FDrypNC9Yjc8fPOLn9FX9KSYvKTr4rvx3iSIlTJabIQwj2ICCR/oLxBA==";

    fn keys() -> AwsKeys {
        AwsKeys {
            access_key_id: "AKIDEXAMPLE".to_owned(),
            secret_access_key: "wJalrXUtnFEMI/K7MDENG+bPxRfiCYEXAMPLEKEY".to_owned(),
            session_token: None,
            region: "us-east-1".to_owned(),
        }
    }

    /// Checks one request of the suite, written as in the suite.
    #[track_caller]
    fn check(method: &'static str, target: &str, extra: &[(&str, &str)], body: &str, signature: &str) {
        let (path, query) = target.split_once('?').unwrap_or((target, ""));
        let query = query.split('&').filter(|pair| !pair.is_empty()).map(|pair| {
            let (name, value) = pair.split_once('=').unwrap_or((pair, ""));
            (name.to_owned(), value.to_owned())
        });
        let mut headers = vec![("host", "example.amazonaws.com"), ("x-amz-date", "20150830T123600Z")];
        headers.extend(extra);
        let headers = headers.into_iter().map(|(name, value)| (name.to_owned(), value.to_owned())).collect();
        let request = Signable { method, path, query: query.collect(), headers, body: body.as_bytes() };
        let header = authorization(&keys(), SCOPE, request, &stamp(STAMP_MS));
        let prefix =
            "AWS4-HMAC-SHA256 Credential=AKIDEXAMPLE/20150830/us-east-1/service/aws4_request, SignedHeaders=";
        assert!(header.starts_with(prefix), "{header}");
        assert_eq!(header.rsplit('=').next(), Some(signature), "{method} {target}");
    }

    #[test]
    fn signatures_are_those_of_the_published_suite() {
        let get = |target: &str, signature: &str| check("GET", target, &[], "", signature);
        let vanilla = "5fa00fa31553b73ebf1942676e86291e8372ff2a2260956d9b8aae1d763fbf31";
        get("/", vanilla);
        get("/example/..", vanilla);
        get("/example1/example2/../..", vanilla);
        get("//", vanilla);
        get("/./", vanilla);
        get("//example//", "9a624bd73a37c9a373b5312afbebe7a714a789de108f0bdfe846570885f57e84");
        get("/./example", "ef75d96142cf21edca26f06005da7988e4f8dc83a165a80865db7089db637ec5");
        get("/example space/", "652487583200325589f1fba4c7e578f72c47cb61beeca81406b39ddec1366741");
        get("/ሴ", "8318018e0b0f223aa2bbf98705b62bb787dc9c0e678f255a891fd03141be5d85");
        get(
            "/-._~0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz",
            "07ef7494c76fa4850883e2b006601f940f8a34d404d0cfa977f52a65bbf5f24f",
        );
        get(
            "/?Param2=value2&Param1=value1",
            "b97d918cfa904a5beff61c982a1b6f458b799221646efd99d3219ec94cdf2500",
        );
        get("/?Param1=value1", "a67d582fa61cc504c4bae71f336f98b97f1ea3c7a6bfe1b6e45aec72011b9aeb");
        get("/?ሴ=bar", "2cdec8eed098649ff3a119c94853b13c643bcf08f8b0a1d91e12c9027818dd04");
        check(
            "GET",
            "/",
            &[("my-header1", " value1"), ("my-header2", " \"a   b   c\"")],
            "",
            "acc3ed3afb60bb290fc8d2dd0098b9911fcaa05412b367055dee359757a9c736",
        );
        let post = |extra: &[(&str, &str)], body: &str, signature: &str| {
            check("POST", "/", extra, body, signature);
        };
        post(&[], "", "5da7c1a2acd57cee7505fc6676e4e544621c30862966e37dddb68e92efbe5d6b");
        post(
            &[("my-header1", "VALUE1")],
            "",
            "cdbc9802e29d2942e5e10b5bccfdd67c5f22c7c4e8ae67b53629efa58b974b7d",
        );
        post(
            &[("content-type", "application/x-www-form-urlencoded")],
            "Param1=value1",
            "ff11897932ad3f4e8b18135d722051e5ac45fc38421b1da7b9d196a0fe09473a",
        );
        post(
            &[("x-amz-security-token", TOKEN)],
            "",
            "85d96828115b5dc0cfc3bd16ad9e210dd772bbebba041836c64533a82be05ead",
        );
    }

    #[test]
    fn a_whole_request_is_signed_again_for_every_attempt() {
        let mut keys = keys();
        let url = "https://example.amazonaws.com/".parse().unwrap();
        let mut headers = HeaderMap::new();
        headers.insert("user-agent", HeaderValue::from_static("not signed"));
        let mut sign = |keys: &AwsKeys, now_ms: u64| {
            sign_post(keys, SCOPE, &url, &mut headers, b"", now_ms).unwrap();
            let header = &headers["authorization"];
            assert!(header.is_sensitive());
            (headers["x-amz-date"].clone(), header.to_str().unwrap().rsplit('=').next().unwrap().to_owned())
        };
        let expected = "5da7c1a2acd57cee7505fc6676e4e544621c30862966e37dddb68e92efbe5d6b";
        assert_eq!(sign(&keys, STAMP_MS).1, expected);
        let later = sign(&keys, STAMP_MS + 60_000);
        assert_eq!(later.0, "20150830T123700Z");
        assert_ne!(later.1, expected);
        keys.session_token = Some(TOKEN.to_owned());
        assert_eq!(
            sign(&keys, STAMP_MS).1,
            "85d96828115b5dc0cfc3bd16ad9e210dd772bbebba041836c64533a82be05ead"
        );
    }

    #[test]
    fn paths_are_escaped_once_more_than_they_are_sent() {
        let check = |path: &str, expected: &str| assert_eq!(canonical_path(path), expected);
        check(
            "/model/us.amazon.nova-micro-v1%3A0/converse-stream",
            "/model/us.amazon.nova-micro-v1%253A0/converse-stream",
        );
        check(
            "/model/arn%3Aaws%3Abedrock%3Aus-east-1%3A1%3Ainference-profile%2Fa/converse-stream",
            "/model/arn%253Aaws%253Abedrock%253Aus-east-1%253A1%253Ainference-profile%252Fa/converse-stream",
        );
        check("", "/");
        check("/a@b", "/a%40b");
    }
}

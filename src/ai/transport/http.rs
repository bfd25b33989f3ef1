//! The one transport: sends a request and returns the response or the text of the
//! failure.
//!
//! Clients are built on first use. The client with TLS is separate from the plain
//! one, because reading the system's certificates takes far longer than a request
//! to a local server. `reqwest` reads proxies from the environment; addresses that
//! only this machine can reach bypass them. There is no total deadline: an answer
//! may take as long as bytes keep arriving.

use std::error::Error as _;
use std::net::{IpAddr, Ipv6Addr};
use std::sync::{Arc, OnceLock};
use std::time::Duration;

use reqwest::header::{HeaderMap, LOCATION, RETRY_AFTER};
use reqwest::redirect::Policy;
use reqwest::{Certificate, Client, ClientBuilder, NoProxy, Proxy, Response, StatusCode, Url};

use super::http_body::HttpBody;
use super::quota::Quotas;
use super::redact;
use super::roots::ExtraRoots;
use super::silence::in_time;
use crate::ai::failure::{ErrorBody, FailureClass, NO_RETRY, RETRY, RequestError, clip};

const CONNECT_TIMEOUT: Duration = Duration::from_secs(15);
const MAX_REDIRECTS: usize = 3;
/// Maximum size read of an error body.
const ERROR_BODY_LIMIT_BYTES: usize = 64 << 10;
/// Maximum wait for an error body; its status is already known.
const ERROR_BODY_TIMEOUT: Duration = Duration::from_secs(10);

/// A request ready to send, by `POST`.
#[derive(Debug, Clone)]
pub(in crate::ai) struct HttpRequest {
    pub(in crate::ai) url: String,
    pub(in crate::ai) headers: HeaderMap,
    pub(in crate::ai) body: HttpBody,
    /// The service answers a conversation that is too long with an error without a body.
    pub(in crate::ai) empty_error_is_overflow: bool,
    /// The provider whose limits the response reports.
    pub(in crate::ai) provider: String,
}

/// Connections to services, shared by all requests of the process. Cheap to clone.
#[derive(Debug, Clone, Default)]
pub struct Transport {
    clients: Arc<Clients>,
    quotas: Quotas,
}

#[derive(Debug, Default)]
struct Clients {
    extra: ExtraRoots,
    /// In place of those of the environment.
    proxy: Option<Proxy>,
    for_requests: Slots,
    for_sockets: Slots,
}

/// A client for each route, built on first use.
#[derive(Debug, Default)]
struct Slots {
    plain: Slot,
    tls: Slot,
    plain_direct: Slot,
    tls_direct: Slot,
}

type Slot = OnceLock<Result<Client, String>>;

impl Slots {
    fn client(
        &self,
        route: Route,
        builder: impl Fn() -> ClientBuilder,
        extra: &ExtraRoots,
    ) -> Result<&Client, String> {
        let slot = match route {
            Route { tls: false, direct: false } => &self.plain,
            Route { tls: true, direct: false } => &self.tls,
            Route { tls: false, direct: true } => &self.plain_direct,
            Route { tls: true, direct: true } => &self.tls_direct,
        };
        let build = || {
            let built = with_certificates(builder, route.tls, extra);
            built.map_err(|error| format!("the HTTP client cannot be built: {}", root_cause(&error)))
        };
        slot.get_or_init(build).as_ref().map_err(Clone::clone)
    }
}

/// Selects a client: TLS or plain, with or without proxies.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(in crate::ai) struct Route {
    tls: bool,
    /// Bypasses all proxies.
    direct: bool,
}

impl Route {
    pub(in crate::ai) fn to(url: &Url) -> Self {
        Self { tls: url.scheme() == "https", direct: is_near(url) }
    }
}

/// Whether an address is this machine, or a metadata service that gives credentials
/// to this machine only. A proxy could not reach either, or would get the answer for
/// its own machine.
fn is_near(url: &Url) -> bool {
    /// Amazon's metadata services for instances and containers.
    const AMAZON: [Ipv6Addr; 2] = [
        Ipv6Addr::new(0xfd00, 0x0ec2, 0, 0, 0, 0, 0, 0x254),
        Ipv6Addr::new(0xfd00, 0x0ec2, 0, 0, 0, 0, 0, 0x23),
    ];
    let host = url.host_str().unwrap_or_default();
    match host.trim_start_matches('[').trim_end_matches(']').parse::<IpAddr>().map(|ip| ip.to_canonical()) {
        Ok(IpAddr::V4(ip)) => ip.is_loopback() || ip.is_link_local() || ip.is_unspecified(),
        Ok(IpAddr::V6(ip)) => {
            ip.is_loopback() || ip.is_unicast_link_local() || ip.is_unspecified() || AMAZON.contains(&ip)
        }
        Err(_) => host == "localhost" || host.ends_with(".localhost") || host == "metadata.google.internal",
    }
}

impl Transport {
    /// Connections that are opened when needed, with the proxies of the environment.
    pub fn new() -> Self {
        Self::default()
    }

    /// As [`Self::new`], trusting `extra` in addition to the certificates of the system.
    pub fn trusting(extra: ExtraRoots) -> Self {
        let clients = Clients { extra, ..Clients::default() };
        Self { clients: Arc::new(clients), quotas: Quotas::default() }
    }

    /// The same with `proxy` in place of the proxies of the environment; `NO_PROXY` still counts.
    ///
    /// # Errors
    /// If it is not the address of a proxy.
    pub fn through(self, proxy: &str) -> Result<Self, String> {
        let proxy = Proxy::all(proxy).map_err(|error| root_cause(&error))?.no_proxy(NoProxy::from_env());
        let clients = Clients { extra: self.clients.extra.clone(), proxy: Some(proxy), ..Clients::default() };
        Ok(Self { clients: Arc::new(clients), quotas: self.quotas })
    }

    /// What services reported about their limits in the headers of responses.
    pub fn quotas(&self) -> &Quotas {
        &self.quotas
    }

    /// Builds the client with TLS unless it exists. This takes some tens of milliseconds;
    /// call it on a background thread at startup.
    pub fn warm_up(&self) {
        self.client(Route { tls: true, direct: false }).map_or_else(drop, drop);
    }

    /// As [`Self::warm_up`], for WebSockets.
    pub(in crate::ai) fn warm_up_sockets(&self) {
        self.socket_client(Route { tls: true, direct: false }).map_or_else(drop, drop);
    }

    /// What is wrong with the certificates that are trusted in addition, in one line.
    /// Blocks: parses them unless a connection did.
    pub fn certificate_problem(&self) -> Option<String> {
        self.clients.extra.problem()
    }

    pub(in crate::ai) fn client(&self, route: Route) -> Result<&Client, String> {
        let Clients { for_requests, proxy, extra, .. } = &*self.clients;
        let builder = || builder(route, proxy.as_ref()).connect_timeout(CONNECT_TIMEOUT);
        for_requests.client(route, builder, extra)
    }

    /// A client for upgrades, which only HTTP/1.1 has; their deadline is that of the caller.
    pub(super) fn socket_client(&self, route: Route) -> Result<&Client, String> {
        let Clients { for_sockets, proxy, extra, .. } = &*self.clients;
        for_sockets.client(route, || builder(route, proxy.as_ref()).http1_only(), extra)
    }

    /// A client for servers on this machine, which bypasses proxies and waits for
    /// connections at most `connect_timeout`; `None` if it cannot be built.
    pub(in crate::ai) fn local_client(&self, tls: bool, connect_timeout: Duration) -> Option<Client> {
        let builder = || client_builder().no_proxy().connect_timeout(connect_timeout);
        with_certificates(builder, tls, &self.clients.extra).ok()
    }

    /// Sends `request` and waits for the headers of a successful response.
    ///
    /// `silence` limits the wait for the headers; `service` and `now_ms` are used in
    /// the failure's text and to read dates in it. Dropping the future closes the
    /// connection.
    ///
    /// # Errors
    /// If the connection fails, no response arrives in time, or the status is not a success.
    pub(in crate::ai) async fn send(
        &self,
        request: &HttpRequest,
        service: &str,
        silence: Option<Duration>,
        now_ms: u64,
    ) -> Result<Response, RequestError> {
        let url: Url = match request.url.parse() {
            Ok(url) => url,
            Err(error) => {
                let url = redact::shown_url(&request.url);
                return Err(unsendable(format!("invalid URL {url}: {error}")));
            }
        };
        if !matches!(url.scheme(), "http" | "https") {
            let url = redact::shown_url(url.as_str());
            return Err(unsendable(format!("unsupported scheme in {url}; use http or https")));
        }
        let route = Route::to(&url);
        let client = self.client(route).map_err(unsendable)?;
        let origin = url.origin().ascii_serialization();
        let sending = request.body.attach(client.post(url).headers(request.headers.clone())).send();
        let sent = match silence {
            Some(limit) => in_time(sending, limit).await.ok_or_else(|| {
                let seconds = limit.as_secs_f64();
                let text = format!("timed out: no answer from {service} for {seconds} s");
                RequestError::of_class(text, FailureClass::Network)
            })?,
            None => sending.await,
        };
        let response = sent.map_err(|error| self.connection_error(&error, &origin, route))?;
        self.quotas.note(&request.provider, response.headers(), now_ms);
        if response.status().is_success() {
            return Ok(response);
        }
        let sent_bytes = request.body.n_bytes();
        Err(status_error(response, service, sent_bytes, request.empty_error_is_overflow, now_ms).await)
    }

    /// As [`connection_error`], and the certificates that could be the cause.
    fn connection_error(&self, error: &reqwest::Error, origin: &str, route: Route) -> RequestError {
        let mut failed = connection_error(error, origin);
        let is_untrusted = route.tls && error.is_connect() && !error.is_timeout();
        if let Some(problem) = self.certificate_problem().filter(|_| is_untrusted) {
            failed.text = format!("{}; {problem}", failed.text);
        }
        failed
    }
}

/// The common configuration of every client.
fn client_builder() -> ClientBuilder {
    // Fails if a provider is already installed, which is then used.
    rustls::crypto::ring::default_provider().install_default().unwrap_or_else(drop);
    Client::builder().user_agent(concat!("pi/", env!("CARGO_PKG_VERSION")))
}

/// A client that trusts the certificates of the system, `SSL_CERT_FILE` or `SSL_CERT_DIR`, and
/// `extra`. Where there are none at all, as in many containers, those that Mozilla trusts
/// take the place of the system's; they are part of the program.
fn with_certificates(
    builder: impl Fn() -> ClientBuilder,
    tls: bool,
    extra: &ExtraRoots,
) -> reqwest::Result<Client> {
    if !tls {
        return builder().tls_certs_only([]).build();
    }
    // With `extra` this would succeed where the system has none.
    let of_system = builder().build();
    match of_system {
        Ok(_) if !extra.is_empty() => builder().tls_certs_merge(extra.certificates().iter().cloned()).build(),
        Err(_) => {
            builder().tls_certs_only(bundled_roots().chain(extra.certificates().iter().cloned())).build()
        }
        built => built,
    }
}

fn bundled_roots() -> impl Iterator<Item = Certificate> {
    webpki_root_certs::TLS_SERVER_ROOT_CERTS.iter().filter_map(|root| Certificate::from_der(root).ok())
}

fn builder(route: Route, proxy: Option<&Proxy>) -> ClientBuilder {
    // Keys and the conversation are meant for the original server only, so redirects
    // to other servers are not followed.
    let policy = Policy::custom(|attempt| {
        let origin = attempt.previous().first().map(Url::origin);
        if origin == Some(attempt.url().origin()) && attempt.previous().len() <= MAX_REDIRECTS {
            attempt.follow()
        } else {
            // The response then has a 3xx status and contains the target.
            attempt.stop()
        }
    });
    let builder = client_builder().redirect(policy);
    match proxy {
        _ if route.direct => builder.no_proxy(),
        Some(proxy) => builder.proxy(proxy.clone()),
        None => builder,
    }
}

/// A request that would fail again on every retry.
fn unsendable(text: String) -> RequestError {
    RequestError::of_class(text, FailureClass::Unknown)
}

/// A request that got no response.
pub(in crate::ai) fn connection_error(error: &reqwest::Error, origin: &str) -> RequestError {
    let cause = root_cause(error);
    let text = if error.is_timeout() {
        format!("connection error: connecting to {origin} timed out")
    } else if cause.contains("certificate") {
        let tip = if cause.contains("UnknownIssuer") {
            "; if you trust who signed it, name that authority's certificate in NODE_EXTRA_CA_CERTS"
        } else if cause.contains("CaUsedAsEndEntity") {
            "; the server's certificate is its own authority (CA:TRUE), which is not accepted as that of \
             a server; make one with CA:FALSE and a subjectAltName, or sign it with an authority"
        } else {
            ""
        };
        let text = format!("connection error: cannot reach {origin} ({cause}){tip}");
        // The next attempt would end in the same way.
        return RequestError::of_class(text, FailureClass::InvalidRequest);
    } else if error.is_connect() {
        format!("connection error: cannot reach {origin} ({cause})")
    } else if error.is_builder() {
        return unsendable(format!("the request to {origin} cannot be sent: {cause}"));
    } else {
        format!("connection lost: {origin} ({cause})")
    };
    RequestError::of_class(text, FailureClass::Network)
}

/// Reads an unsuccessful response.
async fn status_error(
    response: Response,
    service: &str,
    sent_bytes: u64,
    empty_is_overflow: bool,
    now_ms: u64,
) -> RequestError {
    let status = response.status();
    let headers = response.headers().clone();
    let mut body = Vec::new();
    let reading = read_into(&mut body, response, ERROR_BODY_LIMIT_BYTES);
    // The part that arrived in time is better than nothing.
    let _in_time = tokio::time::timeout(ERROR_BODY_TIMEOUT, reading).await;
    let body = String::from_utf8_lossy(&body);
    error_of_parts(status, &headers, &body, service, sent_bytes, empty_is_overflow, now_ms)
}

fn error_of_parts(
    status: StatusCode,
    headers: &HeaderMap,
    body: &str,
    service: &str,
    sent_bytes: u64,
    empty_is_overflow: bool,
    now_ms: u64,
) -> RequestError {
    let header = |name: &str| headers.get(name).and_then(|value| value.to_str().ok());
    let is_empty = body.trim().is_empty();
    let mut error = if status.is_redirection() {
        let target = header(LOCATION.as_str()).map_or("nowhere".into(), redact::shown_url);
        let message = format!("{service} redirects to {target}; check the base URL");
        ErrorBody { message, ..ErrorBody::default() }
    } else if is_empty {
        ErrorBody { message: format!("{service} answered with an empty body"), ..ErrorBody::default() }
    } else if let Some(page) = html_page(body, service).filter(|_| status == StatusCode::PAYLOAD_TOO_LARGE) {
        // The page of a proxy in front of the service.
        let message = format!("{page}; the request is too large{}", size_note(sent_bytes));
        ErrorBody { message, ..ErrorBody::default() }
    } else if let Some(message) = html_text(body, service) {
        ErrorBody { message, ..ErrorBody::default() }
    } else {
        ErrorBody::from_text(body)
    };
    if error.code.is_none() {
        // `ThrottlingException:http://...` at Amazon.
        let kind = header("x-amzn-errortype").and_then(|kind| kind.split(':').next());
        error.code = kind.map(str::to_owned);
    }
    let retry_after = retry_after(headers, now_ms);
    if let Some(delay) = retry_after.filter(|delay| !delay.is_zero()) {
        error.notes.push(format!("retry after {}s", delay.as_secs_f64()));
    }
    let verdict = match header("x-should-retry") {
        Some("true") => Some(RETRY),
        Some("false") => Some(NO_RETRY),
        _ => None,
    };
    error.notes.extend(verdict.map(str::to_owned));
    error.retry_after = retry_after.or(error.retry_after);
    let mut error = error.into_error(Some(status.as_u16()));
    if is_empty && empty_is_overflow && matches!(status.as_u16(), 400 | 413) {
        error.failure.class = FailureClass::Overflow;
    }
    error
}

/// The wait from `retry-after-ms`, otherwise from `retry-after`: seconds or a date.
fn retry_after(headers: &HeaderMap, now_ms: u64) -> Option<Duration> {
    let header = |name: &str| headers.get(name)?.to_str().ok().map(str::trim);
    let seconds = |seconds: f64| Duration::try_from_secs_f64(seconds.max(0.0)).ok();
    let exact = header("retry-after-ms").and_then(|ms| seconds(ms.parse::<f64>().ok()? / 1_000.0));
    exact.filter(|delay| !delay.is_zero()).or_else(|| {
        let value = header(RETRY_AFTER.as_str())?;
        if let Ok(number) = value.parse::<f64>() {
            return seconds(number);
        }
        let date = jiff::fmt::rfc2822::parse(value).ok()?;
        let date_ms = u64::try_from(date.timestamp().as_millisecond()).ok()?;
        Some(Duration::from_millis(date_ms.saturating_sub(now_ms)))
    })
}

/// Appends the start of a response's body, as much as arrives.
async fn read_into(body: &mut Vec<u8>, mut response: Response, limit_bytes: usize) {
    while body.len() < limit_bytes {
        match response.chunk().await {
            Ok(Some(chunk)) => body.extend_from_slice(&chunk[..chunk.len().min(limit_bytes - body.len())]),
            Ok(None) | Err(_) => break,
        }
    }
}

/// A response's complete body as text.
///
/// # Errors
/// If it ends early or is larger than `limit_bytes`; a partial body is useless.
pub(in crate::ai) async fn read_whole(mut response: Response, limit_bytes: usize) -> Result<String, String> {
    let mut body = Vec::new();
    loop {
        match response.chunk().await {
            Ok(Some(chunk)) if body.len().saturating_add(chunk.len()) > limit_bytes => {
                return Err(format!("an answer of more than {limit_bytes} bytes"));
            }
            Ok(Some(chunk)) => body.extend_from_slice(&chunk),
            Ok(None) => return Ok(String::from_utf8_lossy(&body).into_owned()),
            Err(error) => return Err(root_cause(&error)),
        }
    }
}

/// The readable text of an HTML page; `None` if `body` is not HTML.
pub(in crate::ai) fn html_text(body: &str, service: &str) -> Option<String> {
    html_page(body, service).map(|page| format!("{page}; check the base URL"))
}

/// ` (1.2 MB)`, or nothing if the size is unknown.
fn size_note(sent_bytes: u64) -> String {
    const MB: u64 = 1_000_000;
    match sent_bytes {
        0 => String::new(),
        bytes if bytes < MB => format!(" ({} kB)", bytes.div_ceil(1_000)),
        bytes => format!(" ({:.1} MB)", bytes as f64 / MB as f64),
    }
}

/// A few words about a body that is a web page.
fn html_page(body: &str, service: &str) -> Option<String> {
    let body = body.trim_start_matches('\u{feff}').trim_start();
    if !body.starts_with('<') {
        return None;
    }
    let lower = body.to_ascii_lowercase();
    let title = lower.find("<title").and_then(|tag| {
        let start = tag + lower[tag..].find('>')? + 1;
        let end = start + lower[start..].find("</title")?;
        Some(clip(body[start..end].trim())).filter(|title| !title.is_empty())
    });
    let title = title.map_or_else(String::new, |title| format!(" ({title})"));
    Some(format!("{service} answered with an HTML page{title}"))
}

/// The innermost cause, which is the one the user can act on.
pub(in crate::ai) fn root_cause(error: &reqwest::Error) -> String {
    let mut cause = error.source();
    let mut text = None;
    while let Some(inner) = cause {
        text = Some(inner.to_string());
        cause = inner.source();
    }
    text.unwrap_or_else(|| error.to_string())
}

#[cfg(test)]
mod tests {
    use reqwest::header::{HeaderName, HeaderValue};

    use super::*;

    fn headers(pairs: &[(&'static str, &'static str)]) -> HeaderMap {
        let pairs = pairs
            .iter()
            .map(|(name, value)| (HeaderName::from_static(name), HeaderValue::from_static(value)));
        pairs.collect()
    }

    #[test]
    fn bundled_certificates_make_a_client() {
        assert!(bundled_roots().count() > 100);
        let route = Route { tls: true, direct: false };
        builder(route, None).tls_certs_only(bundled_roots()).build().unwrap();
    }

    #[test]
    fn this_machine_and_what_answers_it_alone_are_near() {
        let check = |url: &str, expected: bool| {
            assert_eq!(is_near(&url.parse().unwrap()), expected, "{url}");
        };
        for near in [
            "http://localhost:11434",
            "http://LOCALHOST",
            "http://api.localhost/v1",
            "http://127.0.0.1",
            "http://127.1.2.3:8080",
            "http://2130706433",
            "http://0.0.0.0:1",
            "http://[::1]:1",
            "http://[::ffff:127.0.0.1]",
            "http://[fe80::1]",
            "http://169.254.169.254/latest",
            "http://169.254.170.2",
            "http://[fd00:ec2::254]",
            "http://metadata.google.internal/x",
            "https://localhost",
        ] {
            check(near, true);
        }
        for far in [
            "https://api.openai.com",
            "http://localhost.example.com",
            "http://10.0.0.1",
            "http://gpu.lan:11434",
            "http://[fd00::1]",
            "http://127.0.0.1@example.com",
        ] {
            check(far, false);
        }
    }

    #[test]
    fn demanded_waits_are_read_from_headers() {
        let check = |pairs: &[(&'static str, &'static str)], expected: Option<f64>| {
            let now_ms = 784_111_777_000;
            assert_eq!(
                retry_after(&headers(pairs), now_ms).map(|delay| delay.as_secs_f64()),
                expected,
                "{pairs:?}"
            );
        };
        check(&[], None);
        check(&[("retry-after", "12")], Some(12.0));
        check(&[("retry-after", "12"), ("retry-after-ms", "1500")], Some(1.5));
        check(&[("retry-after", "1"), ("retry-after-ms", "0")], Some(1.0));
        check(&[("retry-after", "Sun, 06 Nov 1994 08:49:57 GMT")], Some(20.0));
        check(&[("retry-after", "Sun, 06 Nov 1994 08:49:00 GMT")], Some(0.0));
        check(&[("retry-after", "soon")], None);
        check(&[("retry-after", "1e400")], None);
    }

    #[test]
    fn failures_carry_what_is_known_beside_the_text() {
        let read = |status: u16, pairs: &[(&'static str, &'static str)], body: &str, overflow: bool| {
            let status = StatusCode::from_u16(status).unwrap();
            error_of_parts(status, &headers(pairs), body, "acme", 0, overflow, 0).failure
        };
        for status in [400, 413] {
            assert_eq!(read(status, &[("retry-after", "1")], " ", true).class, FailureClass::Overflow);
        }
        let check =
            |status, pairs: &[(&'static str, &'static str)], body: &str| read(status, pairs, body, false);
        assert_eq!(check(400, &[], "").class, FailureClass::InvalidRequest);
        let limited = check(429, &[("retry-after-ms", "1500")], "Slow down, retry after 9 s");
        assert_eq!(limited.class, FailureClass::RateLimit);
        assert_eq!(limited.retry_after, Some(Duration::from_millis(1_500)));
        let body = r#"{"error":{"message":"Invalid image.","param":"input[2].content[0]"}}"#;
        let refused = check(400, &[], body).rejection.unwrap();
        assert_eq!(refused.place, crate::ai::RequestPath::parse("input[2].content[0]"));
    }

    #[test]
    fn failures_name_status_service_and_cause() {
        let check =
            |status: u16, pairs: &[(&'static str, &'static str)], body: &str, expected: (&str, bool)| {
                let status = StatusCode::from_u16(status).unwrap();
                let error = error_of_parts(status, &headers(pairs), body, "acme", 1_200_000, false, 0);
                assert_eq!((error.text.as_str(), error.failure.class.is_retryable()), expected);
                assert_eq!(error.failure.status, Some(status.as_u16()));
            };
        check(
            502,
            &[],
            "<html><head><title>Bad gateway</title>",
            ("502: acme answered with an HTML page (Bad gateway); check the base URL", true),
        );
        check(
            413,
            &[],
            "<html><head><title>413 Request Entity Too Large</title>",
            (
                "413: acme answered with an HTML page (413 Request Entity Too Large); the request is too large (1.2 MB)",
                false,
            ),
        );
        check(500, &[], "", ("500: acme answered with an empty body", true));
        check(
            429,
            &[("retry-after", "3")],
            r#"{"error":{"message":"slow","type":"t"}}"#,
            ("429: slow (t, retry after 3s)", true),
        );
        check(429, &[("x-should-retry", "false")], "busy", ("429: busy (not to be retried)", false));
        check(400, &[("x-should-retry", "true")], "busy", ("400: busy (to be retried)", true));
        check(
            307,
            &[("location", "https://u:p@b.c/d?key=k")],
            "",
            ("307: acme redirects to https://b.c/d; check the base URL", false),
        );
        check(
            400,
            &[("x-amzn-errortype", "ThrottlingException:http://x")],
            r#"{"message":"m"}"#,
            ("400: m (ThrottlingException)", true),
        );
        check(
            307,
            &[("location", "https://b.c/")],
            "",
            ("307: acme redirects to https://b.c/; check the base URL", false),
        );
    }
}

//! Signing in and renewing tokens, against a scripted server: requests to services,
//! stored tokens, failures.

#![expect(clippy::unwrap_used, reason = "a test ends where something is not as it must be")]

use std::collections::BTreeMap;
use std::fs;
use std::path::PathBuf;
use std::sync::Arc;

use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use futures_util::StreamExt as _;
use pi::ai::{
    Api, AssistantMessage, Catalog, Credential, HttpOptions, HttpProvider, LiveCatalog, Model, Provider,
    Request, StreamEvent, StreamOptions, TestBarrier, Transport,
};
use pi::config::{
    Accounts, AuthFile, Authorised, CredentialError, Credentials, Endpoints, Env, Secret, SignInError,
    SignInMethod, SignInPrompt, SignInRequest, SignInStep,
};
use pi::util::clock::Clock;
use reqwest::Url;
use serde_json::{Value, json};
use tempfile::TempDir;
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::mpsc;
use tokio::task::JoinHandle;
use tokio_util::sync::CancellationToken;

use crate::support::chat;
use crate::support::sse_server::{RecordedRequest, Reply, SseServer};

const NOW_MS: u64 = 1_795_253_027_280;
/// The purpose of tokens, unless a test specifies another.
const RESOURCE: &str = "http://127.0.0.1:1/v1";

/// One user's accounts, whose services are one scripted server.
struct Bench {
    folder: TempDir,
    server: SseServer,
    clock: Clock,
}

impl Bench {
    async fn new(replies: impl IntoIterator<Item = Reply>) -> Self {
        let folder = tempfile::tempdir().unwrap();
        Self { folder, server: SseServer::start(replies).await, clock: Clock::manual(NOW_MS) }
    }

    fn path(&self) -> PathBuf {
        self.folder.path().join("auth.json")
    }

    fn write(&self, content: &Value) {
        fs::write(self.path(), content.to_string()).unwrap();
    }

    fn stored(&self) -> Value {
        serde_json::from_str(&fs::read_to_string(self.path()).unwrap()).unwrap()
    }

    fn endpoints(&self) -> Endpoints {
        let url = self.server.url().to_owned();
        Endpoints {
            openai: url.clone(),
            openai_resource: RESOURCE.to_owned(),
            codex: RESOURCE.to_owned(),
            github: url.clone(),
            github_api: url,
            copilot: "https://copilot.example".to_owned(),
            callback_port: 0,
        }
    }

    /// The state of one process; another call is another process.
    fn credentials(&self) -> Credentials {
        self.credentials_at(self.endpoints())
    }

    /// The same, with tokens that are for `api`.
    fn credentials_for(&self, api: &SseServer) -> Credentials {
        self.credentials_at(Endpoints { openai_resource: api.url().to_owned(), ..self.endpoints() })
    }

    fn credentials_at(&self, endpoints: Endpoints) -> Credentials {
        let file = Arc::new(AuthFile::open(self.path()));
        let (transport, clock) = (Transport::new(), self.clock.clone());
        let client_id = Some("app-of-mine".to_owned());
        let accounts = Accounts::new(transport, clock, endpoints, Arc::clone(&file), client_id);
        Credentials::new(Env::of(&[])).with_store(file, accounts)
    }

    fn sign_in(&self, provider: &str, method: SignInMethod) -> SigningIn {
        self.sign_in_at(self.endpoints(), provider, method)
    }

    fn sign_in_at(&self, endpoints: Endpoints, provider: &str, method: SignInMethod) -> SigningIn {
        let accounts = self.credentials_at(endpoints).accounts().unwrap().clone();
        let (steps, told) = mpsc::unbounded_channel();
        let (paste, pasted) = mpsc::unbounded_channel();
        let request = SignInRequest { provider: provider.to_owned(), method, client_id: None, domain: None };
        let prompt = SignInPrompt { steps, pasted };
        let task = tokio::spawn(async move { accounts.sign_in(request, prompt).await });
        SigningIn { told, paste, task }
    }

    /// A form that was posted, by the position of its request.
    fn form(&self, request_idx: usize) -> BTreeMap<String, String> {
        fields(&self.server.requests()[request_idx].text)
    }
}

struct SigningIn {
    told: mpsc::UnboundedReceiver<SignInStep>,
    paste: mpsc::UnboundedSender<Secret>,
    task: JoinHandle<Result<(), SignInError>>,
}

impl SigningIn {
    async fn step(&mut self) -> SignInStep {
        self.told.recv().await.expect("the sign-in goes on")
    }

    /// The address the browser is sent to.
    async fn browser(&mut self) -> Url {
        match self.step().await {
            SignInStep::Browser { url } => url.parse().unwrap(),
            other => panic!("{other:?}"),
        }
    }

    async fn end(self) -> Result<(), String> {
        self.task.await.unwrap().map_err(|error| error.to_string())
    }
}

fn fields(query: &str) -> BTreeMap<String, String> {
    let url = Url::parse(&format!("http://x/?{query}")).unwrap();
    url.query_pairs().into_owned().collect()
}

fn json_reply(status: u16, body: &Value) -> Reply {
    Reply::status(status, &[("content-type", "application/json")], &body.to_string())
}

/// Opens an address of this machine like a browser; returns the status of the reply.
async fn visit(url: &str) -> String {
    let url: Url = url.parse().unwrap();
    let mut socket = TcpStream::connect(("127.0.0.1", url.port().unwrap())).await.unwrap();
    let target = format!("{}?{}", url.path(), url.query().unwrap_or_default());
    socket.write_all(format!("GET {target} HTTP/1.1\r\nhost: x\r\n\r\n").as_bytes()).await.unwrap();
    let mut reply = String::new();
    socket.read_to_string(&mut reply).await.unwrap();
    let code = fields(url.query().unwrap_or_default()).remove("code").unwrap_or_default();
    assert!(code.is_empty() || !reply.contains(&code), "the page repeats the request");
    reply.split(' ').nth(1).unwrap().to_owned()
}

fn jwt(claims: &Value) -> String {
    format!("e30.{}.sig", URL_SAFE_NO_PAD.encode(claims.to_string()))
}

fn codex_token() -> String {
    jwt(&json!({"https://api.openai.com/auth": {"chatgpt_account_id": "acc-1"}}))
}

const SCOPES: &str = "openid offline_access resource.invoke chatgpt.tokens.use.direct";

fn chatgpt_tokens(scope: &str, id_token: Option<String>) -> Reply {
    json_reply(
        200,
        &json!({"access_token": "acc", "refresh_token": "ref", "expires_in": 3600, "scope": scope, "id_token": id_token}),
    )
}

// Sign in with ChatGPT.

#[tokio::test]
async fn a_browser_signs_in_with_chatgpt_and_registers_this_installation() {
    let bench = Bench::new([]).await;
    bench.write(&json!({"groq": {"type": "api_key", "key": "k"}}));
    let mut signing_in = bench.sign_in("openai", SignInMethod::Browser);
    let url = signing_in.browser().await;
    assert_eq!(url.path(), "/api/accounts/authorize");
    let query = fields(url.query().unwrap());
    let installation = fs::read_to_string(bench.folder.path().join("installation-id")).unwrap();
    for (name, value) in [
        ("client_id", "dynamic_agent_client"),
        ("agent_name_hint", "pi"),
        ("ext_agent_host_id", &format!("urn:uuid:{}", installation.trim())),
        ("resource", RESOURCE),
        ("code_challenge_method", "S256"),
    ] {
        assert_eq!(query[name], value, "{name}");
    }
    let redirect = &query["redirect_uri"];
    assert!(redirect.starts_with("http://127.0.0.1:") && redirect.ends_with("/auth/callback"), "{redirect}");

    // Requests that any web page or any program of this machine could send.
    assert_eq!(visit(&format!("{redirect}?code=theirs&state=guessed")).await, "400");
    assert_eq!(visit(&format!("{redirect}?error=access_denied")).await, "400");
    assert_eq!(visit(&redirect.replace("/auth/callback", "/favicon.ico")).await, "400");
    assert!(bench.server.requests().is_empty());

    bench.server.reply(chatgpt_tokens(SCOPES, Some(jwt(&json!({"nonce": query["nonce"]})))));
    let back = format!("{redirect}?code=the-code&state={}&client_id=oaiapp_1", query["state"]);
    assert_eq!(visit(&back).await, "200");
    signing_in.end().await.unwrap();

    let form = bench.form(0);
    assert_eq!(bench.server.requests()[0].path, "/api/accounts/oauth/token");
    for (name, value) in [
        ("grant_type", "authorization_code"),
        ("client_id", "oaiapp_1"),
        ("code", "the-code"),
        ("redirect_uri", redirect),
        ("resource", RESOURCE),
    ] {
        assert_eq!(form[name], value, "{name}");
    }
    let challenge = ring::digest::digest(&ring::digest::SHA256, form["code_verifier"].as_bytes());
    assert_eq!(query["code_challenge"], URL_SAFE_NO_PAD.encode(challenge));
    assert_eq!(
        bench.stored(),
        json!({
            "groq": {"type": "api_key", "key": "k"},
            "openai": {
                "type": "oauth", "access": "acc", "refresh": "ref", "expires": NOW_MS + 3_600_000,
                "clientId": "oaiapp_1", "scope": SCOPES,
            },
        })
    );

    // The same installation comes back under the name it was given.
    let mut again = bench.sign_in("openai", SignInMethod::Browser);
    let query = fields(again.browser().await.query().unwrap());
    assert_eq!(query["client_id"], "oaiapp_1");
    assert!(!query.contains_key("agent_name_hint"));
    assert_eq!(query["ext_agent_host_id"], format!("urn:uuid:{}", installation.trim()));
    again.task.abort();
}

/// Pastes the address the browser returned to, and returns how the sign-in ends.
async fn chatgpt_ends(back: &str, reply: Option<Reply>) -> (Result<(), String>, bool) {
    let bench = Bench::new(reply).await;
    let mut signing_in = bench.sign_in("openai", SignInMethod::Browser);
    let query = fields(signing_in.browser().await.query().unwrap());
    let back = format!("{}?{back}&state={}", query["redirect_uri"], query["state"]);
    signing_in.paste.send(Secret::typed(&back)).unwrap();
    let ended = signing_in.end().await;
    (ended, bench.path().exists())
}

#[tokio::test]
async fn nothing_is_stored_of_a_sign_in_that_is_not_right() {
    let tokens = |scope: &str, id_token: Option<String>| Some(chatgpt_tokens(scope, id_token));
    let check = async |back: &str, reply: Option<Reply>, expected: &str| {
        let (ended, is_stored) = chatgpt_ends(back, reply).await;
        let error = ended.unwrap_err();
        assert!(error.contains(expected), "{error} for {expected}");
        assert!(!is_stored, "{expected}");
    };
    check("error=access_denied", None, "declined").await;
    check("error=server_error&error_description=later", None, "later").await;
    check("code=c", None, "no client id").await;
    check("code=c&client_id=dynamic_agent_client", None, "no client id").await;
    let back = "code=c&client_id=oaiapp_1";
    check(back, tokens("openid offline_access", None), "chatgpt.tokens.use.direct is missing").await;
    check(back, tokens(SCOPES, Some(jwt(&json!({"nonce": "other"})))), "identity").await;
    check(back, tokens(SCOPES, Some("garbage".to_owned())), "identity").await;
    check(back, Some(json_reply(400, &json!({"error": "invalid_grant"}))), "rejected it: invalid_grant")
        .await;
    check(back, Some(json_reply(200, &json!("?"))), "no token").await;
    check(back, Some(Reply::status(503, &[], "")), "not available").await;
    check(back, Some(Reply::raw("").hang_up()), "connection").await;
    let (ended, is_stored) = chatgpt_ends(back, tokens(SCOPES, None)).await;
    assert_eq!((ended, is_stored), (Ok(()), true));
}

#[tokio::test]
async fn a_code_alone_does_not_end_a_first_sign_in_with_chatgpt() {
    let bench = Bench::new([]).await;
    let mut signing_in = bench.sign_in("openai", SignInMethod::Browser);
    let query = fields(signing_in.browser().await.query().unwrap());
    signing_in.paste.send(Secret::typed(&format!("c#{}", query["state"]))).unwrap();
    let step = signing_in.step().await;
    assert!(matches!(&step, SignInStep::Problem(text) if text.contains("whole address")), "{step:?}");
    bench.server.reply(chatgpt_tokens(SCOPES, None));
    let back = format!("{}?code=c&client_id=oaiapp_1&state={}", query["redirect_uri"], query["state"]);
    signing_in.paste.send(Secret::typed(&back)).unwrap();
    signing_in.end().await.unwrap();
}

#[tokio::test]
async fn a_broken_file_refuses_the_sign_in_and_stays() {
    let bench = Bench::new([chatgpt_tokens(SCOPES, None)]).await;
    fs::write(bench.path(), "{ broken").unwrap();
    let mut signing_in = bench.sign_in("openai", SignInMethod::Browser);
    let query = fields(signing_in.browser().await.query().unwrap());
    let back = format!("{}?code=c&client_id=o&state={}", query["redirect_uri"], query["state"]);
    signing_in.paste.send(Secret::typed(&back)).unwrap();
    let error = signing_in.end().await.unwrap_err();
    assert!(error.contains("fix the file and try again"), "{error}");
    assert_eq!(fs::read_to_string(bench.path()).unwrap(), "{ broken");
}

// The sign-in of Codex.

#[tokio::test]
async fn a_code_can_be_pasted_when_the_browser_cannot_come_back() {
    let tokens = json!({"access_token": codex_token(), "refresh_token": "ref", "expires_in": 60});
    let bench = Bench::new([json_reply(200, &tokens)]).await;
    // Another program has the port.
    let taken = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let port = taken.local_addr().unwrap().port();
    let endpoints = Endpoints { callback_port: port, ..bench.endpoints() };
    let mut signing_in = bench.sign_in_at(endpoints, "openai-codex", SignInMethod::Browser);
    assert!(matches!(signing_in.step().await, SignInStep::Problem(text) if text.contains("in use")));
    let url = signing_in.browser().await;
    let query = fields(url.query().unwrap());
    assert_eq!((url.path(), query["originator"].as_str()), ("/oauth/authorize", "pi"));
    assert_eq!(query["redirect_uri"], format!("http://localhost:{port}/auth/callback"));
    for useless in ["code", "code#other-state", "http://localhost/auth/callback?code=c&state=x"] {
        signing_in.paste.send(Secret::typed(useless)).unwrap();
        assert!(matches!(signing_in.step().await, SignInStep::Problem(_)), "{useless}");
    }
    signing_in.paste.send(Secret::typed(&format!("the-code#{}", query["state"]))).unwrap();
    signing_in.end().await.unwrap();
    assert_eq!(bench.form(0)["code"], "the-code");
    let user_agent = bench.server.requests()[0].header("user-agent").unwrap().to_owned();
    assert!(user_agent.starts_with("pi/"), "{user_agent}");
    assert_eq!(bench.stored()["openai-codex"]["accountId"], "acc-1");
}

#[tokio::test(start_paused = true)]
async fn a_device_code_signs_in_to_codex() {
    let asked = json!({"device_auth_id": "dev", "user_code": "AB-12", "interval": "5"});
    let granted = json!({"authorization_code": "the-code", "code_verifier": "theirs"});
    let tokens = json!({"access_token": codex_token(), "refresh_token": "ref", "expires_in": 60});
    let bench = Bench::new([
        json_reply(200, &asked),
        json_reply(403, &json!({"error": {"code": "deviceauth_authorization_pending"}})),
        json_reply(404, &json!({})),
        json_reply(400, &json!({"error": "slow_down"})),
        json_reply(200, &granted),
        json_reply(200, &tokens),
    ])
    .await;
    let start = tokio::time::Instant::now();
    let mut signing_in = bench.sign_in("openai-codex", SignInMethod::DeviceCode);
    let device =
        SignInStep::Device { url: format!("{}/codex/device", bench.server.url()), code: "AB-12".to_owned() };
    assert_eq!(signing_in.step().await, device);
    signing_in.end().await.unwrap();
    assert_eq!(start.elapsed().as_secs(), 25, "5 + 5 + 5, and 10 after slow_down");
    let requests = bench.server.requests();
    let paths: Vec<&str> = requests.iter().map(|request| request.path.as_str()).collect();
    let poll = "/api/accounts/deviceauth/token";
    assert_eq!(paths, ["/api/accounts/deviceauth/usercode", poll, poll, poll, poll, "/oauth/token"]);
    assert_eq!(requests[1].body, json!({"device_auth_id": "dev", "user_code": "AB-12"}));
    let form = bench.form(5);
    assert_eq!((form["code"].as_str(), form["code_verifier"].as_str()), ("the-code", "theirs"));
    assert!(form["redirect_uri"].ends_with("/deviceauth/callback"));
}

#[tokio::test(start_paused = true)]
async fn a_workspace_without_device_codes_says_so() {
    let bench = Bench::new([json_reply(404, &json!({}))]).await;
    let ended = bench.sign_in("openai-codex", SignInMethod::DeviceCode).end().await;
    assert!(ended.unwrap_err().contains("sign in with the browser"));
}

// GitHub Copilot.

fn github_device(verification_uri: &str) -> Reply {
    json_reply(
        200,
        &json!({"device_code": "dev", "user_code": "AB-12", "verification_uri": verification_uri, "interval": 5, "expires_in": 900}),
    )
}

fn copilot_token(token: &str, expires_ms: u64) -> Reply {
    let endpoints = json!({"api": "https://api.acme.example"});
    json_reply(200, &json!({"token": token, "expires_at": expires_ms / 1_000, "endpoints": endpoints}))
}

const GITHUB: &str = "https://github.com/login/device";

#[tokio::test(start_paused = true)]
async fn a_device_code_signs_in_to_copilot() {
    let bench = Bench::new([
        github_device(GITHUB),
        json_reply(200, &json!({"error": "authorization_pending"})),
        json_reply(200, &json!({"error": "slow_down", "interval": 12})),
        json_reply(200, &json!({"access_token": "gho_1", "token_type": "bearer"})),
        copilot_token("tid=1", NOW_MS + 1_500_720),
    ])
    .await;
    let start = tokio::time::Instant::now();
    let mut signing_in = bench.sign_in("github-copilot", SignInMethod::DeviceCode);
    let device = SignInStep::Device { url: GITHUB.to_owned(), code: "AB-12".to_owned() };
    assert_eq!(signing_in.step().await, device);
    signing_in.end().await.unwrap();
    assert_eq!(start.elapsed().as_secs(), 22);
    let form = bench.form(0);
    assert_eq!((form["client_id"].as_str(), form["scope"].as_str()), ("app-of-mine", "read:user"));
    assert_eq!(bench.form(1)["grant_type"], "urn:ietf:params:oauth:grant-type:device_code");
    let last: RecordedRequest = bench.server.requests().pop().unwrap();
    assert_eq!((last.method.as_str(), last.path.as_str()), ("GET", "/copilot_internal/v2/token"));
    assert_eq!(last.header("authorization"), Some("Bearer gho_1"));
    assert_eq!(
        bench.stored()["github-copilot"],
        json!({
            "type": "oauth", "access": "tid=1", "refresh": "gho_1", "expires": NOW_MS + 1_500_720,
            "clientId": "app-of-mine", "baseUrl": "https://api.acme.example",
        })
    );
}

#[tokio::test(start_paused = true)]
async fn copilot_sign_ins_end_with_a_reason() {
    let check = async |replies: Vec<Reply>, expected: &str| {
        let bench = Bench::new(replies).await;
        let error = bench.sign_in("github-copilot", SignInMethod::DeviceCode).end().await.unwrap_err();
        assert!(error.contains(expected), "{error} for {expected}");
        assert!(!bench.path().exists());
    };
    let answer = |error: &str| json_reply(200, &json!({"error": error}));
    check(vec![github_device(GITHUB), answer("access_denied")], "declined").await;
    check(vec![github_device(GITHUB), answer("expired_token")], "the sign-in expired").await;
    check(vec![github_device(GITHUB), answer("incorrect_client_credentials")], "incorrect_client").await;
    check(vec![answer("device_flow_disabled")], "device_flow_disabled").await;
    check(vec![github_device("file:///etc/passwd")], "cannot be opened").await;
    let pending = std::iter::repeat_with(|| answer("authorization_pending")).take(200);
    check(std::iter::once(github_device(GITHUB)).chain(pending).collect(), "the sign-in expired").await;
    let token = json_reply(200, &json!({"access_token": "gho_1"}));
    let no_copilot = json_reply(403, &json!({"message": "no access to Copilot"}));
    check(vec![github_device(GITHUB), token, no_copilot], "no access to Copilot").await;
}

#[tokio::test]
async fn a_sign_in_that_is_not_offered_is_refused() {
    let bench = Bench::new([]).await;
    for (provider, method) in [
        ("anthropic", SignInMethod::Browser),
        ("openai", SignInMethod::DeviceCode),
        ("github-copilot", SignInMethod::Browser),
    ] {
        let error = bench.sign_in(provider, method).end().await.unwrap_err();
        assert_eq!(error, format!("{provider} does not support this sign-in"));
    }
}

// Tokens.

/// The catalogue with a provider for every kind of account.
fn catalog(url: &str) -> Arc<Catalog> {
    let models = json!([{ "id": "m-1" }]);
    let custom = json!({"baseUrl": url, "api": "openai-completions", "models": models});
    let providers = json!({"openai-codex": custom, "github-copilot": custom, "openai": {"baseUrl": url}});
    let mut catalog = Catalog::builtin();
    catalog.add_user_models(&json!({ "providers": providers }).to_string()).unwrap();
    Arc::new(catalog)
}

fn model(catalog: &Catalog, provider: &str) -> Arc<Model> {
    Arc::clone(catalog.models_of(provider).first().unwrap())
}

async fn resolve(credentials: &Credentials, provider: &str) -> Result<Credential, CredentialError> {
    let catalog = catalog(RESOURCE);
    credentials.resolve(&model(&catalog, provider), &catalog).await
}

async fn token(credentials: &Credentials, provider: &str) -> Result<String, String> {
    match resolve(credentials, provider).await {
        Ok(Credential::SignedIn(account)) => Ok(account.token),
        Ok(other) => panic!("{other:?}"),
        Err(error) => Err(error.to_string()),
    }
}

fn openai_entry(access: &str, lasts_ms: i64) -> Value {
    let expires = NOW_MS.saturating_add_signed(lasts_ms);
    json!({"type": "oauth", "access": access, "refresh": "ref", "expires": expires, "clientId": "oaiapp_1", "novel": 1})
}

fn renewed(access: &str) -> Reply {
    json_reply(200, &json!({"access_token": access, "refresh_token": "ref-2", "expires_in": 3600}))
}

const MINUTE_MS: i64 = 60_000;

#[tokio::test]
async fn a_token_is_renewed_five_minutes_before_it_ends_and_stored() {
    let bench = Bench::new([renewed("new")]).await;
    bench.write(&json!({"openai": openai_entry("old", 6 * MINUTE_MS)}));
    let credentials = bench.credentials();
    assert_eq!(token(&credentials, "openai").await, Ok("old".to_owned()));
    assert!(bench.server.requests().is_empty());
    bench.clock.advance(std::time::Duration::from_secs(61));
    assert_eq!(token(&credentials, "openai").await, Ok("new".to_owned()));
    let form = bench.form(0);
    let expected = [("grant_type", "refresh_token"), ("client_id", "oaiapp_1"), ("refresh_token", "ref")];
    for (name, value) in expected {
        assert_eq!(form[name], value);
    }
    let expires = bench.clock.now_ms() + 3_600_000;
    assert_eq!(
        bench.stored()["openai"],
        json!({
            "type": "oauth", "access": "new", "refresh": "ref-2", "expires": expires,
            "clientId": "oaiapp_1", "novel": 1,
        })
    );
    assert_eq!(token(&credentials, "openai").await, Ok("new".to_owned()));
    assert_eq!(bench.server.requests().len(), 1);
}

#[tokio::test(flavor = "multi_thread")]
async fn two_processes_renew_a_rotating_token_once() {
    let gate = TestBarrier::new();
    let body = json!({"access_token": "new", "refresh_token": "ref-2", "expires_in": 3600}).to_string();
    let head = format!("HTTP/1.1 200 OK\r\ncontent-length: {}\r\n\r\n", body.len());
    let bench = Bench::new([Reply::raw(head).gate(&gate).piece(body)]).await;
    bench.write(&json!({"openai": openai_entry("old", 0)}));
    // Two of one process, one of another.
    let (one, other) = (bench.credentials(), bench.credentials());
    let tasks = [one.clone(), one, other]
        .map(|credentials| tokio::spawn(async move { token(&credentials, "openai").await }));
    gate.open();
    for task in tasks {
        assert_eq!(task.await.unwrap(), Ok("new".to_owned()));
    }
    assert_eq!(bench.server.requests().len(), 1);
    assert!(!bench.folder.path().join("auth.json.lock").exists());
}

#[tokio::test(flavor = "multi_thread")]
async fn a_linked_file_is_locked_and_written_where_it_is() {
    use std::os::unix::fs::PermissionsExt as _;

    let gate = TestBarrier::new();
    let body = json!({"access_token": "new", "refresh_token": "ref-2", "expires_in": 3600}).to_string();
    let head = format!("HTTP/1.1 200 OK\r\ncontent-length: {}\r\n\r\n", body.len());
    let bench = Bench::new([Reply::raw(head).gate(&gate).piece(body)]).await;
    let target = bench.folder.path().join("dotfiles/auth.json");
    fs::create_dir(target.parent().unwrap()).unwrap();
    fs::write(&target, json!({"openai": openai_entry("old", 0)}).to_string()).unwrap();
    fs::set_permissions(&target, fs::Permissions::from_mode(0o644)).unwrap();
    std::os::unix::fs::symlink(&target, bench.path()).unwrap();
    let credentials = bench.credentials();
    let waiting = tokio::spawn(async move { token(&credentials, "openai").await });
    // The request is sent under the lock.
    gate.reached().await;
    // Whoever comes by the other path sees it.
    let lock = bench.folder.path().join("dotfiles/auth.json.lock");
    assert_eq!((lock.is_dir(), bench.folder.path().join("auth.json.lock").exists()), (true, false));
    gate.open();
    assert_eq!(waiting.await.unwrap(), Ok("new".to_owned()));
    assert!(fs::symlink_metadata(bench.path()).unwrap().is_symlink());
    assert_eq!(bench.stored()["openai"]["access"], "new");
    assert_eq!(fs::metadata(&target).unwrap().permissions().mode() & 0o777, 0o600);
}

#[tokio::test]
async fn a_refused_token_asks_for_a_new_sign_in_and_the_entry_stays() {
    let refusal = json!({"error": "invalid_grant", "error_description": "spent"});
    let bench = Bench::new([json_reply(400, &refusal)]).await;
    bench.write(&json!({"openai": openai_entry("old", 4 * MINUTE_MS)}));
    let before = bench.stored();
    assert_eq!(
        token(&bench.credentials(), "openai").await,
        Err("the sign-in to openai has expired (spent (invalid_grant)); sign in again with /login openai"
            .to_owned())
    );
    assert_eq!(bench.stored(), before);
}

#[tokio::test]
async fn a_service_out_of_reach_costs_nothing_while_the_token_lasts() {
    let bench = Bench::new([Reply::status(503, &[], ""), Reply::status(503, &[], "")]).await;
    bench.write(&json!({"openai": openai_entry("old", 4 * MINUTE_MS)}));
    let before = bench.stored();
    let credentials = bench.credentials();
    assert_eq!(token(&credentials, "openai").await, Ok("old".to_owned()));
    bench.clock.advance(std::time::Duration::from_secs(300));
    let error = token(&credentials, "openai").await.unwrap_err();
    assert_eq!(
        error,
        "cannot renew the sign-in to openai now: 503: the sign-in service is not available at the moment"
    );
    assert_eq!(bench.stored(), before);
}

#[tokio::test]
async fn what_stands_in_the_way_of_a_renewal_is_not_the_end_of_the_sign_in() {
    let page = "<html><title>Just a moment</title>";
    let html = |status: u16| Reply::status(status, &[("content-type", "text/html")], page);
    let broken_off = "HTTP/1.1 200 OK\r\ncontent-length: 500\r\n\r\n{\"access_token\": \"n";
    for (reply, expected) in [
        (html(403), "the provider rejected it: status 403"),
        (html(200), "the provider sent an unexpected response: no JSON"),
        (json_reply(400, &json!({"error": "invalid_request"})), "the provider rejected it: invalid_request"),
        (Reply::raw(broken_off).hang_up(), "connection error: no whole answer"),
        (Reply::status(200, &[], &"x".repeat(300 << 10)), "connection error: no whole answer"),
    ] {
        let bench = Bench::new([reply.clone(), reply]).await;
        bench.write(&json!({"openai": openai_entry("old", 4 * MINUTE_MS)}));
        let before = bench.stored();
        let credentials = bench.credentials();
        assert_eq!(token(&credentials, "openai").await, Ok("old".to_owned()), "{expected}");
        bench.clock.advance(std::time::Duration::from_secs(300));
        let error = token(&credentials, "openai").await.unwrap_err();
        let expected = format!("cannot renew the sign-in to openai now: {expected}");
        assert!(error.starts_with(&expected), "{error} for {expected}");
        assert_eq!(bench.stored(), before);
    }
}

#[tokio::test]
async fn a_revoked_github_token_asks_for_a_new_sign_in() {
    let bench = Bench::new([json_reply(401, &json!({"message": "Bad credentials"}))]).await;
    bench.write(&json!({
        "github-copilot": {"type": "oauth", "access": "tid=1", "refresh": "gho_1", "expires": NOW_MS - 1},
    }));
    assert_eq!(
        token(&bench.credentials(), "github-copilot").await,
        Err("the sign-in to github-copilot has expired (Bad credentials); sign in again with /login github-copilot"
            .to_owned())
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn a_renewal_outlives_its_caller() {
    let gate = TestBarrier::new();
    let body = json!({"access_token": "new", "refresh_token": "ref-2", "expires_in": 3600}).to_string();
    let head = format!("HTTP/1.1 200 OK\r\ncontent-length: {}\r\n\r\n", body.len());
    let bench = Bench::new([Reply::raw(head).gate(&gate).piece(body)]).await;
    bench.write(&json!({"openai": openai_entry("old", 0)}));
    let credentials = bench.credentials();
    let waiting = tokio::spawn({
        let credentials = credentials.clone();
        async move { token(&credentials, "openai").await }
    });
    gate.reached().await;
    waiting.abort();
    drop(waiting.await);
    gate.open();
    credentials.settled().await;
    assert_eq!(bench.stored()["openai"]["refresh"], "ref-2");
}

#[tokio::test]
async fn the_end_of_the_program_waits_as_long_as_a_renewal_may_take() {
    let never = TestBarrier::new();
    let bench = Bench::new([Reply::raw("").gate(&never)]).await;
    bench.write(&json!({"openai": openai_entry("old", 0)}));
    let credentials = bench.credentials();
    let waiting = tokio::spawn({
        let credentials = credentials.clone();
        async move { token(&credentials, "openai").await }
    });
    never.reached().await;
    tokio::time::pause();
    let start = tokio::time::Instant::now();
    credentials.settled().await;
    // The call began before time was paused.
    let waited_s = start.elapsed().as_secs();
    assert!((20..=30).contains(&waited_s), "until the call is given up: {waited_s} s");
    assert!(waiting.await.unwrap().unwrap_err().contains("cannot renew the sign-in"));
}

#[tokio::test]
async fn an_account_of_the_original_goes_on() {
    let bench = Bench::new([copilot_token("tid=2;proxy-ep=proxy.x", NOW_MS + 1_500_000)]).await;
    // As the original writes them: without client id and address.
    bench.write(&json!({
        "github-copilot": {"type": "oauth", "access": "tid=1", "refresh": "gho_1", "expires": NOW_MS - 1},
        "openai-codex": {"type": "oauth", "access": codex_token(), "refresh": "r", "expires": NOW_MS + 3_600_000, "accountId": "acc-9"},
    }));
    let credentials = bench.credentials();
    let Ok(Credential::SignedIn(account)) = resolve(&credentials, "github-copilot").await else { panic!() };
    assert_eq!(account.token, "tid=2;proxy-ep=proxy.x");
    assert_eq!(account.base_url.as_deref(), Some("https://api.acme.example"));
    assert_eq!(bench.stored()["github-copilot"]["refresh"], "gho_1");
    let Ok(Credential::SignedIn(account)) = resolve(&credentials, "openai-codex").await else { panic!() };
    assert_eq!((account.account_id.as_deref(), account.base_url), (Some("acc-9"), None));
}

// Requests.

/// The end of an answer, asked of `provider` at `api`.
async fn ask(credentials: &Credentials, api: &SseServer) -> AssistantMessage {
    let catalog = catalog(api.url());
    let model = model(&catalog, "openai");
    let clock = Clock::manual(NOW_MS);
    let http = HttpProvider::new(Transport::new(), clock, HttpOptions::default());
    let provider =
        Authorised::new(Arc::new(http), credentials.clone(), Arc::new(LiveCatalog::new((*catalog).clone())));
    let mut model = (*model).clone();
    model.api = Api::OPENAI_COMPLETIONS;
    let request = Request {
        model: Arc::new(model),
        credential: Credential::None,
        messages: Vec::new(),
        options: StreamOptions::default(),
    };
    let mut events = provider.stream(Arc::new(request), CancellationToken::new());
    while let Some(event) = events.next().await {
        if let StreamEvent::Done(message) = event {
            assert!(events.next().await.is_none());
            return *message;
        }
    }
    panic!("no end")
}

fn bearers(api: &SseServer) -> Vec<String> {
    let bearer = |request: &RecordedRequest| request.header("authorization").unwrap().to_owned();
    api.requests().iter().map(bearer).collect()
}

#[tokio::test]
async fn a_token_that_is_not_taken_is_renewed_and_the_request_repeated_once() {
    let refusal = || json_reply(401, &json!({"error": {"message": "token revoked"}}));
    let bench = Bench::new([renewed("new")]).await;
    bench.write(&json!({"openai": openai_entry("old", 60 * MINUTE_MS)}));
    let api = SseServer::start([refusal(), Reply::sse(chat::text("hello"))]).await;
    let credentials = bench.credentials_for(&api);
    let answer = ask(&credentials, &api).await;
    assert_eq!(answer.texts().collect::<String>(), "hello");
    assert_eq!(bearers(&api), ["Bearer old", "Bearer new"]);
    assert_eq!(bench.stored()["openai"]["refresh"], "ref-2");

    bench.server.reply(renewed("newer"));
    let api = SseServer::start([refusal(), refusal()]).await;
    let credentials = bench.credentials_for(&api);
    let answer = ask(&credentials, &api).await;
    assert!(answer.error_message.unwrap().starts_with("401: token revoked"));
    assert_eq!(bearers(&api), ["Bearer new", "Bearer newer"]);

    bench.server.reply(json_reply(400, &json!({"error": "invalid_grant"})));
    let api = SseServer::start([refusal()]).await;
    let credentials = bench.credentials_for(&api);
    let error = ask(&credentials, &api).await.error_message.unwrap();
    assert!(error.contains("token revoked") && error.contains("sign in again with /login openai"), "{error}");
}

#[tokio::test]
async fn a_token_that_cannot_be_had_is_the_reason_of_the_answer() {
    let bench = Bench::new([json_reply(400, &json!({"error": "invalid_grant"}))]).await;
    bench.write(&json!({"openai": openai_entry("old", 0)}));
    let api = SseServer::start([]).await;
    let error = ask(&bench.credentials_for(&api), &api).await.error_message.unwrap();
    assert!(error.starts_with("the sign-in to openai has expired"), "{error}");
    assert!(api.requests().is_empty());
}

#[tokio::test]
async fn an_account_is_not_sent_to_a_gateway() {
    let bench = Bench::new([]).await;
    bench.write(&json!({
        "openai": openai_entry("canary", 60 * MINUTE_MS),
        "openai-codex": {"type": "oauth", "access": codex_token(), "refresh": "r", "expires": NOW_MS + 3_600_000},
        "github-copilot": {"type": "oauth", "access": "tid=1", "refresh": "gho_1", "expires": NOW_MS + 3_600_000},
    }));
    let gateway = SseServer::start([]).await;
    let credentials = bench.credentials();
    let error = ask(&credentials, &gateway).await.error_message.unwrap();
    let expected =
        format!("no key for openai: pi does not send its sign-in to {}; set the key", gateway.url());
    assert!(error.starts_with(&expected), "{error}");
    assert!(gateway.requests().is_empty());

    let elsewhere = catalog(gateway.url());
    let codex = credentials.resolve(&model(&elsewhere, "openai-codex"), &elsewhere).await;
    assert!(codex.is_err_and(|error| error.to_string().contains("openai-codex in models.json")));
    // The token's own address takes precedence over the model's.
    let copilot = credentials.resolve(&model(&elsewhere, "github-copilot"), &elsewhere).await;
    let Ok(Credential::SignedIn(account)) = copilot else { panic!("{copilot:?}") };
    assert_eq!(account.base_url.as_deref(), Some("https://copilot.example"));

    // The gateway's own key counts.
    let mut with_key = Catalog::clone(&elsewhere);
    let provider = json!({"providers": {"openai": {"baseUrl": gateway.url(), "apiKey": "of-gateway"}}});
    with_key.add_user_models(&provider.to_string()).unwrap();
    let key = credentials.resolve(&model(&with_key, "openai"), &with_key).await;
    assert_eq!(key, Ok(Credential::ApiKey("of-gateway".to_owned())));
}

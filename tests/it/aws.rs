//! Keys for Amazon, from the environment, from files, and from a server of our own.

#![expect(clippy::unwrap_used, reason = "a test ends where something is not as it must be")]

use std::fs;
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use futures_util::StreamExt as _;
use pi::ai::{
    BEDROCK_TEMPLATE, Catalog, Credential, HttpOptions, HttpProvider, LiveCatalog, Model, Provider as _,
    Request, StreamEvent, StreamOptions, Transport,
};
use pi::config::{Authorised, AwsCredentials, AwsEndpoints, AwsError, Credentials, Env};
use pi::util::clock::Clock;
use serde_json::json;
use tempfile::TempDir;
use tokio_util::sync::CancellationToken;

use crate::support::bedrock::framed;
use crate::support::sse_server::{RecordedRequest, Reply, SseServer};

/// 2026-11-21T12:00:00Z.
const NOW_MS: u64 = 1_795_262_400_000;
const IN_AN_HOUR: &str = "2026-11-21T13:00:00Z";

/// A home with these shared files.
fn home(credentials: &str, config: &str) -> TempDir {
    let home = tempfile::tempdir().unwrap();
    fs::create_dir(home.path().join(".aws")).unwrap();
    for (name, text) in [("credentials", credentials), ("config", config)] {
        if !text.is_empty() {
            fs::write(home.path().join(".aws").join(name), text).unwrap();
        }
    }
    home
}

/// With `url` behind all services.
fn source(env: &[(&str, &str)], home: &Path, url: &str, clock: &Clock) -> AwsCredentials {
    let endpoints = AwsEndpoints {
        container: url.to_owned(),
        metadata: url.to_owned(),
        sts: format!("{url}/sts-{{region}}"),
    };
    AwsCredentials::new(&Env::of(env), Some(home), Transport::new(), clock.clone()).with_endpoints(endpoints)
}

/// Of a machine that is not one of Amazon's.
fn at_home(env: &[(&str, &str)], home: &Path) -> AwsCredentials {
    let mut env = env.to_vec();
    env.push(("AWS_EC2_METADATA_DISABLED", "true"));
    source(&env, home, "http://127.0.0.1:1", &Clock::manual(NOW_MS))
}

/// `id secret token region` of keys, `bearer token address` of a token.
async fn outline(source: &AwsCredentials) -> Result<String, AwsError> {
    Ok(match source.credential(BEDROCK_TEMPLATE).await? {
        Credential::Aws(keys) => {
            let token = keys.session_token.as_deref().unwrap_or("-");
            format!("{} {} {token} {}", keys.access_key_id, keys.secret_access_key, keys.region)
        }
        Credential::SignedIn(account) => {
            format!("bearer {} {}", account.token, account.base_url.as_deref().unwrap_or("-"))
        }
        other => panic!("{other:?}"),
    })
}

#[track_caller]
fn check_error(result: Result<String, AwsError>, expected: &str) {
    let error = result.unwrap_err().to_string();
    assert!(error.contains(expected), "{error}");
    assert!(!error.contains("canary"), "{error}");
}

const KEYS: &[(&str, &str)] = &[("AWS_ACCESS_KEY_ID", "A"), ("AWS_SECRET_ACCESS_KEY", "s\n")];

#[tokio::test]
async fn the_nearest_place_counts() {
    let home = home(
        "[default]\naws_access_key_id = F\naws_secret_access_key = fs\n",
        "[default]\nregion = eu-west-1\n",
    );
    let check = async |env: &[(&str, &str)], expected: &str| {
        let source = at_home(env, home.path());
        assert!(source.is_configured());
        assert_eq!(outline(&source).await.unwrap(), expected);
    };
    check(&[], "F fs - eu-west-1").await;
    check(KEYS, "A s - eu-west-1").await;
    let all = [KEYS, &[("AWS_SESSION_TOKEN", "t"), ("AWS_DEFAULT_REGION", "eu-west-2")]].concat();
    check(&all, "A s t eu-west-2").await;
    let all = [all.as_slice(), &[("AWS_REGION", "eu-west-3")]].concat();
    check(&all, "A s t eu-west-3").await;
    let all = [all.as_slice(), &[("AWS_BEARER_TOKEN_BEDROCK", "b")]].concat();
    check(&all, "bearer b https://bedrock-runtime.eu-west-3.amazonaws.com").await;
    // Half of a pair is none.
    check(&[("AWS_ACCESS_KEY_ID", "A")], "F fs - eu-west-1").await;
}

#[tokio::test]
async fn profiles_are_put_together_from_both_files() {
    let credentials = "[work]\naws_access_key_id = W\naws_secret_access_key = ws\naws_session_token = wt\n";
    let config =
        "[profile work]\naws_access_key_id = other\nregion = ap-south-1\n[profile region-only]\nregion = x\n";
    let home = home(credentials, config);
    let check = async |profile: &str, expected: Result<&str, &str>| {
        let found = outline(&at_home(&[("AWS_PROFILE", profile)], home.path())).await;
        match expected {
            Ok(expected) => assert_eq!(found.unwrap(), expected),
            Err(expected) => check_error(found, expected),
        }
    };
    check("work", Ok("W ws wt ap-south-1")).await;
    check("region-only", Err("has no keys; run aws configure --profile region-only")).await;
    check("gone", Err("the AWS profile \"gone\" is neither")).await;
    let moved = home.path().join("moved");
    fs::rename(home.path().join(".aws/credentials"), &moved).unwrap();
    let env = [("AWS_PROFILE", "work"), ("AWS_SHARED_CREDENTIALS_FILE", moved.to_str().unwrap())];
    assert_eq!(outline(&at_home(&env, home.path())).await.unwrap(), "W ws wt ap-south-1");
}

#[tokio::test]
async fn what_a_profile_needs_the_tool_for_is_named() {
    let config = "[profile sso]\nsso_session = corp\nsso_account_id = 1\n[sso-session corp]\nsso_region = x\n\
        [profile role]\nrole_arn = arn\nsource_profile = sso\n";
    let home = home("", config);
    for (profile, what) in [("sso", "uses SSO"), ("role", "uses an assumed role")] {
        let source = at_home(&[("AWS_PROFILE", profile)], home.path());
        assert!(source.is_configured());
        let found = outline(&source).await;
        let hint = format!("credential_process = aws configure export-credentials --profile {profile}");
        assert!(found.as_ref().is_err_and(|error| error.to_string().contains(&hint)));
        check_error(found, what);
    }
}

#[tokio::test]
async fn without_anything_the_ways_to_get_in_are_named() {
    let empty = tempfile::tempdir().unwrap();
    let source = at_home(&[], empty.path());
    assert!(!source.is_configured());
    check_error(outline(&source).await, "set AWS_BEARER_TOKEN_BEDROCK, or AWS_ACCESS_KEY_ID");
    // A region alone is nothing to begin with.
    let home = home("", "[default]\nregion = eu-west-1\n");
    assert!(!at_home(&[], home.path()).is_configured());
    // A folder where a file should be.
    let env = [("AWS_SHARED_CREDENTIALS_FILE", home.path().to_str().unwrap())];
    check_error(outline(&at_home(&env, home.path())).await, "cannot read ");
    let env = [env.as_slice(), KEYS].concat();
    assert_eq!(outline(&at_home(&env, home.path())).await.unwrap(), "A s - us-east-1");
}

#[tokio::test]
async fn a_profile_may_have_a_program_of_its_own() {
    let check = async |command: &str, expected: Result<&str, &str>| {
        let home = home("", &format!("[default]\ncredential_process = {command}\n"));
        let found = outline(&at_home(&[], home.path())).await;
        match expected {
            Ok(expected) => assert_eq!(found.unwrap(), expected),
            Err(expected) => check_error(found, expected),
        }
    };
    let printed = r#"{"Version": 1, "AccessKeyId": "P", "SecretAccessKey": "ps", "SessionToken": "pt"}"#;
    check(&format!("echo 'a word' >&2; echo '{printed}'"), Ok("P ps pt us-east-1")).await;
    check("echo canary", Err("it did not print JSON")).await;
    check("echo '{\"AccessKeyId\": \"canary\"}'", Err("it printed no keys")).await;
    check("exit 3", Err("it exited with exit status: 3")).await;
}

#[tokio::test]
async fn keys_of_a_program_are_kept_until_five_minutes_before_their_end() {
    let folder = tempfile::tempdir().unwrap();
    let (count, home_of) = (folder.path().join("count"), |command: &str| {
        home("", &format!("[default]\ncredential_process = {command}\n"))
    });
    let path = count.display();
    let printed = format!(r#"{{"AccessKeyId": "P", "SecretAccessKey": "s", "Expiration": "{IN_AN_HOUR}"}}"#);
    let home = home_of(&format!("echo x >> {path}; echo '{printed}'"));
    let clock = Clock::manual(NOW_MS);
    let env = [("AWS_EC2_METADATA_DISABLED", "true")];
    let source = source(&env, home.path(), "http://127.0.0.1:1", &clock);
    let runs = async || {
        assert_eq!(outline(&source).await.unwrap(), "P s - us-east-1");
        fs::read_to_string(&count).unwrap().lines().count()
    };
    assert_eq!(runs().await, 1);
    clock.advance(Duration::from_secs(55 * 60 - 1));
    assert_eq!(runs().await, 1);
    clock.advance(Duration::from_secs(1));
    assert_eq!(runs().await, 2);
}

fn keys_reply(id: &str) -> Reply {
    let body = json!({"Code": "Success", "AccessKeyId": id, "SecretAccessKey": "s", "Token": "t", "Expiration": IN_AN_HOUR});
    Reply::status(200, &[("content-type", "application/json")], &body.to_string())
}

#[tokio::test]
async fn containers_ask_their_own_service() {
    let folder = tempfile::tempdir().unwrap();
    let token_file = folder.path().join("token");
    fs::write(&token_file, "from-file\n").unwrap();
    let server = SseServer::start([keys_reply("C1"), keys_reply("C2"), keys_reply("C3")]).await;
    let clock = Clock::manual(NOW_MS);
    let relative = [("AWS_CONTAINER_CREDENTIALS_RELATIVE_URI", "/v2/keys?id=1")];
    let container = source(&relative, folder.path(), server.url(), &clock);
    assert!(container.is_configured());
    assert_eq!(outline(&container).await.unwrap(), "C1 s t us-east-1");
    assert_eq!(outline(&container).await.unwrap(), "C1 s t us-east-1");
    container.forget("t");
    assert_eq!(outline(&container).await.unwrap(), "C2 s t us-east-1");

    let url = format!("{}/full", server.url());
    let full = [
        ("AWS_CONTAINER_CREDENTIALS_FULL_URI", url.as_str()),
        ("AWS_CONTAINER_AUTHORIZATION_TOKEN", "from-variable"),
        ("AWS_CONTAINER_AUTHORIZATION_TOKEN_FILE", token_file.to_str().unwrap()),
    ];
    assert_eq!(
        outline(&source(&full, folder.path(), server.url(), &clock)).await.unwrap(),
        "C3 s t us-east-1"
    );
    let requests = server.requests();
    let seen: Vec<_> = requests
        .iter()
        .map(|request| (request.method.as_str(), request.path.as_str(), request.header("authorization")))
        .collect();
    let first = ("GET", "/v2/keys?id=1", None);
    assert_eq!(seen, [first, first, ("GET", "/full", Some("from-file"))]);

    let elsewhere = [("AWS_CONTAINER_CREDENTIALS_FULL_URI", "http://example.com/keys")];
    let found = outline(&source(&elsewhere, folder.path(), server.url(), &clock)).await;
    check_error(found, "pi does not request AWS keys from http://example.com/keys");
}

#[tokio::test]
async fn a_service_that_gives_no_keys_says_why() {
    let folder = tempfile::tempdir().unwrap();
    let denied = Reply::status(403, &[], r#"{"code": "AccessDenied", "message": "not for you"}"#);
    let odd = Reply::status(200, &[], "<html>");
    let server = SseServer::start([denied, odd]).await;
    let env = [("AWS_CONTAINER_CREDENTIALS_RELATIVE_URI", "/keys")];
    let container = source(&env, folder.path(), server.url(), &Clock::manual(NOW_MS));
    let who = "the container's credentials service returned no AWS keys";
    check_error(outline(&container).await, &format!("{who} (403): AccessDenied: not for you"));
    check_error(outline(&container).await, &format!("{who} (200): no reason given"));
}

#[tokio::test]
async fn a_web_identity_is_traded_for_keys() {
    let folder = tempfile::tempdir().unwrap();
    let token_file = folder.path().join("token");
    fs::write(&token_file, "jwt+/=\n").unwrap();
    let granted = format!(
        "<AssumeRoleWithWebIdentityResponse xmlns=\"https://sts.amazonaws.com/doc/2011-06-15/\"><AssumeRoleWithWebIdentityResult>\
         <Credentials><AccessKeyId>W</AccessKeyId><SecretAccessKey>ws</SecretAccessKey><SessionToken>wt&amp;x</SessionToken>\
         <Expiration>{IN_AN_HOUR}</Expiration></Credentials></AssumeRoleWithWebIdentityResult></AssumeRoleWithWebIdentityResponse>"
    );
    let refused = "<ErrorResponse><Error><Type>Sender</Type><Code>ExpiredTokenException</Code><Message>Token expired</Message></Error></ErrorResponse>";
    let server =
        SseServer::start([Reply::status(200, &[], &granted), Reply::status(400, &[], refused)]).await;
    let env = [
        ("AWS_WEB_IDENTITY_TOKEN_FILE", token_file.to_str().unwrap()),
        ("AWS_ROLE_ARN", "arn:aws:iam::1:role/r"),
        ("AWS_REGION", "eu-west-1"),
    ];
    let clock = Clock::manual(NOW_MS);
    let identity = source(&env, folder.path(), server.url(), &clock);
    assert!(identity.is_configured());
    assert_eq!(outline(&identity).await.unwrap(), "W ws wt&x eu-west-1");
    clock.advance(Duration::from_secs(56 * 60));
    let expected =
        "the security token service returned no AWS keys (400): ExpiredTokenException: Token expired";
    check_error(outline(&identity).await, expected);
    let request = &server.requests()[0];
    assert_eq!((request.method.as_str(), request.path.as_str()), ("POST", "/sts-eu-west-1/"));
    assert_eq!(
        request.text,
        "Action=AssumeRoleWithWebIdentity&Version=2011-06-15&RoleArn=arn%3Aaws%3Aiam%3A%3A1%3Arole%2Fr&RoleSessionName=pi&WebIdentityToken=jwt%2B%2F%3D"
    );
    fs::remove_file(&token_file).unwrap();
    check_error(outline(&identity).await, "cannot read ");
}

#[tokio::test]
async fn an_instance_asks_its_metadata_service_with_a_token() {
    let folder = tempfile::tempdir().unwrap();
    let server = SseServer::start([
        Reply::status(200, &[], "proof"),
        Reply::status(200, &[], "my-role\n"),
        keys_reply("I"),
        Reply::status(404, &[], ""),
    ])
    .await;
    let clock = Clock::manual(NOW_MS);
    let instance = source(&[], folder.path(), server.url(), &clock);
    assert!(!instance.is_configured());
    assert_eq!(outline(&instance).await.unwrap(), "I s t us-east-1");
    assert_eq!(outline(&instance).await.unwrap(), "I s t us-east-1");
    let requests = server.requests();
    let seen: Vec<_> = requests
        .iter()
        .map(|request| {
            let proof = request.header("x-aws-ec2-metadata-token");
            (request.method.as_str(), request.path.as_str(), proof)
        })
        .collect();
    let roles = "/latest/meta-data/iam/security-credentials/";
    let role = format!("{roles}my-role");
    assert_eq!(
        seen,
        [
            ("PUT", "/latest/api/token", None),
            ("GET", roles, Some("proof")),
            ("GET", role.as_str(), Some("proof"))
        ]
    );
    assert_eq!(requests[0].header("x-aws-ec2-metadata-token-ttl-seconds"), Some("21600"));
    instance.forget("t");
    check_error(outline(&instance).await, "no AWS credentials; ");
}

#[tokio::test]
async fn the_address_may_name_the_region() {
    let folder = tempfile::tempdir().unwrap();
    let source = at_home(KEYS, folder.path());
    let check = async |base_url: &str, expected: &str| match source.credential(base_url).await.unwrap() {
        Credential::Aws(keys) => assert_eq!(keys.region, expected),
        other => panic!("{other:?}"),
    };
    check("https://bedrock-runtime.eu-central-1.amazonaws.com", "eu-central-1").await;
    check("http://localhost:1", "us-east-1").await;
}

/// The answer of a Bedrock model at `api`: its text, or the error.
async fn ask(source: AwsCredentials, api: &SseServer) -> String {
    let catalog = Catalog::builtin();
    let credentials = Credentials::new(Env::of(&[])).with_ambient("amazon-bedrock", Arc::new(source));
    let http = HttpProvider::new(Transport::new(), Clock::manual(NOW_MS), HttpOptions::default());
    let mut model = Model::clone(catalog.models_of("amazon-bedrock").first().unwrap());
    api.url().clone_into(&mut model.base_url);
    let provider = Authorised::new(Arc::new(http), credentials, Arc::new(LiveCatalog::new(catalog)));
    let request = Request {
        model: Arc::new(model),
        credential: Credential::None,
        messages: Vec::new(),
        options: StreamOptions::default(),
    };
    let mut events = provider.stream(Arc::new(request), CancellationToken::new());
    while let Some(event) = events.next().await {
        if let StreamEvent::Done(message) = event {
            return message.error_message.clone().unwrap_or_else(|| message.texts().collect());
        }
    }
    panic!("no end")
}

/// The ids of the keys that requests were signed with.
fn signers(api: &SseServer) -> Vec<String> {
    let id = |request: &RecordedRequest| {
        let (_, rest) = request.header("authorization").unwrap().split_once("Credential=").unwrap();
        rest.split('/').next().unwrap().to_owned()
    };
    api.requests().iter().map(id).collect()
}

#[tokio::test]
async fn keys_that_are_not_taken_are_fetched_anew_and_the_request_repeated_once() {
    let refusal = |kind: &str| {
        let headers = [("content-type", "application/json"), ("x-amzn-errortype", kind)];
        Reply::status(403, &headers, r#"{"message": "no"}"#)
    };
    let delta = r#"{"contentBlockDelta":{"contentBlockIndex":0,"delta":{"text":"hello"}}}"#;
    let answer = framed(&[delta, r#"{"messageStop":{"stopReason":"end_turn"}}"#].join("\n"));
    let answer = || Reply::stream("application/vnd.amazon.eventstream").piece(&answer);
    let folder = tempfile::tempdir().unwrap();
    let count = folder.path().join("count");
    // A program whose keys do not expire, and whose id contains the number of its runs.
    let command = format!(
        r#"echo x >> {0}; echo "{{\"AccessKeyId\": \"K$(wc -l < {0} | tr -d ' ')\", \"SecretAccessKey\": \"s\"}}""#,
        count.display()
    );
    let home = home("", &format!("[default]\ncredential_process = {command}\n"));
    for kind in ["ExpiredTokenException", "UnrecognizedClientException:http://x", "InvalidSignatureException"]
    {
        fs::write(&count, "").unwrap();
        let api = SseServer::start([refusal(kind), answer()]).await;
        assert_eq!(ask(at_home(&[], home.path()), &api).await, "hello", "{kind}");
        assert_eq!(signers(&api), ["K1", "K2"]);
    }
    let api = SseServer::start([refusal("ExpiredTokenException"), refusal("ExpiredTokenException")]).await;
    let error = ask(at_home(&[], home.path()), &api).await;
    assert!(error.starts_with("403: no (ExpiredTokenException"), "{error}");
    assert_eq!(api.requests().len(), 2);

    // Nothing else can be had, or keys are not the matter.
    let empty = tempfile::tempdir().unwrap();
    let api = SseServer::start([refusal("ExpiredTokenException")]).await;
    assert!(ask(at_home(KEYS, empty.path()), &api).await.starts_with("403: no (ExpiredTokenException"));
    assert_eq!(signers(&api), ["A"]);
    let api = SseServer::start([refusal("AccessDeniedException")]).await;
    assert!(ask(at_home(&[], home.path()), &api).await.contains("AccessDenied"));
    assert_eq!(api.requests().len(), 1);
}

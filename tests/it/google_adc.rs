//! Tokens of Google, from files and a server of our own.

#![expect(clippy::unwrap_used, reason = "a test ends where something is not as it must be")]

use std::fs;
use std::path::Path;
use std::time::Duration;

use pi::ai::{Credential, Transport, VERTEX_TEMPLATE};
use pi::config::{Env, GoogleAdc, GoogleEndpoints};
use pi::util::clock::Clock;
use serde_json::{Value, json};

use crate::support::sse_server::{Reply, SseServer};

const NOW_MS: u64 = 1_700_000_000_000;

fn token_reply(token: &str) -> Reply {
    let body = json!({"access_token": token, "expires_in": 3_600, "token_type": "Bearer"});
    Reply::status(200, &[("content-type", "application/json")], &body.to_string())
}

/// Writes `file` where gcloud has its own, in `home`.
fn write_gcloud_file(home: &Path, file: &Value) {
    let folder = home.join(".config/gcloud");
    fs::create_dir_all(&folder).unwrap();
    fs::write(folder.join("application_default_credentials.json"), file.to_string()).unwrap();
}

fn adc(env: &[(&str, &str)], home: &Path, server: &SseServer, clock: &Clock) -> GoogleAdc {
    let endpoints =
        GoogleEndpoints { token: format!("{}/token", server.url()), metadata: server.url().to_owned() };
    GoogleAdc::new(&Env::of(env), Some(home), Transport::new(), clock.clone()).with_endpoints(endpoints)
}

fn user() -> Value {
    json!({"type": "authorized_user", "client_id": "c", "client_secret": "s", "refresh_token": "r/1",
        "quota_project_id": "mine"})
}

#[tokio::test]
async fn a_user_refreshes_and_keeps_the_token_until_its_last_minute() {
    let home = tempfile::tempdir().unwrap();
    write_gcloud_file(home.path(), &user());
    let server = SseServer::start([token_reply("one"), token_reply("two"), token_reply("three")]).await;
    let clock = Clock::manual(NOW_MS);
    let adc = adc(&[], home.path(), &server, &clock);
    assert!(adc.is_configured());
    assert_eq!(adc.token().await.unwrap(), "one");
    clock.advance(Duration::from_secs(3_539));
    assert_eq!(adc.token().await.unwrap(), "one");
    clock.advance(Duration::from_secs(1));
    assert_eq!(adc.token().await.unwrap(), "two");
    adc.forget("another");
    assert_eq!(adc.token().await.unwrap(), "two");
    adc.forget("two");
    assert_eq!(adc.token().await.unwrap(), "three");
    let requests = server.requests();
    assert_eq!((requests[0].method.as_str(), requests[0].path.as_str()), ("POST", "/token"));
    assert_eq!(requests[0].header("content-type"), Some("application/x-www-form-urlencoded"));
}

#[tokio::test]
async fn a_credential_has_the_address_of_its_project() {
    let home = tempfile::tempdir().unwrap();
    write_gcloud_file(home.path(), &user());
    let server = SseServer::start([token_reply("t"), token_reply("t")]).await;
    let clock = Clock::manual(NOW_MS);
    let base_url = async |env: &[(&str, &str)]| {
        let credential = adc(env, home.path(), &server, &clock).credential(VERTEX_TEMPLATE).await.unwrap();
        match credential {
            Credential::SignedIn(account) if account.token == "t" => account.base_url.unwrap(),
            other => panic!("{other:?}"),
        }
    };
    let global = "https://aiplatform.googleapis.com/v1/projects/mine/locations/global";
    assert_eq!(base_url(&[]).await, global);
    let set = [("GOOGLE_CLOUD_PROJECT", "other"), ("GOOGLE_CLOUD_LOCATION", "us-east5")];
    let there = "https://us-east5-aiplatform.googleapis.com/v1/projects/other/locations/us-east5";
    assert_eq!(base_url(&set).await, there);
    let key = adc(&[("GOOGLE_CLOUD_API_KEY", "k")], home.path(), &server, &clock);
    assert_eq!(key.credential(VERTEX_TEMPLATE).await.unwrap(), Credential::ApiKey("k".to_owned()));
}

#[tokio::test]
async fn a_service_account_signs_for_its_own_token_address() {
    let home = tempfile::tempdir().unwrap();
    let server = SseServer::start([token_reply("signed")]).await;
    let key = include_str!("../fixtures/google/rfc7515-a2.pem");
    let file = json!({"type": "service_account", "client_email": "a@b", "private_key": key, "project_id": "p",
        "token_uri": format!("{}/own", server.url())});
    let path = home.path().join("key.json");
    fs::write(&path, file.to_string()).unwrap();
    let env = [("GOOGLE_APPLICATION_CREDENTIALS", path.to_str().unwrap())];
    let adc = adc(&env, home.path(), &server, &Clock::manual(NOW_MS));
    assert_eq!(adc.token().await.unwrap(), "signed");
    assert_eq!(adc.place().await.unwrap().project, "p");
    assert_eq!(server.requests()[0].path, "/own");
}

#[tokio::test]
async fn without_files_the_machine_is_asked() {
    let home = tempfile::tempdir().unwrap();
    let server =
        SseServer::start([Reply::status(200, &[], "machine-project\n"), token_reply("machine")]).await;
    let adc = adc(&[], home.path(), &server, &Clock::manual(NOW_MS));
    assert!(!adc.is_configured());
    assert_eq!(adc.place().await.unwrap().project, "machine-project");
    assert_eq!(adc.token().await.unwrap(), "machine");
    let requests = server.requests();
    assert_eq!(requests[0].path, "/computeMetadata/v1/project/project-id");
    assert_eq!(requests[1].path, "/computeMetadata/v1/instance/service-accounts/default/token");
    assert_eq!(requests[1].header("metadata-flavor"), Some("Google"));
}

#[tokio::test]
async fn what_is_missing_is_named() {
    let home = tempfile::tempdir().unwrap();
    let server = SseServer::start([Reply::status(400, &[], r#"{"error":"invalid_grant"}"#)]).await;
    let clock = Clock::manual(NOW_MS);
    let error = async |adc: GoogleAdc| adc.token().await.unwrap_err().to_string();

    let gone = home.path().join("gone.json");
    let env = [("GOOGLE_APPLICATION_CREDENTIALS", gone.to_str().unwrap())];
    let text = error(adc(&env, home.path(), &server, &clock)).await;
    assert!(
        text.starts_with("cannot read the Google credentials in ") && text.contains("gone.json"),
        "{text}"
    );

    // Nothing listens at this address.
    let nowhere = GoogleEndpoints { metadata: "http://127.0.0.1:1".to_owned(), ..GoogleEndpoints::default() };
    let text = error(adc(&[], home.path(), &server, &clock).with_endpoints(nowhere)).await;
    assert!(text.starts_with("no Google credentials; run gcloud auth"), "{text}");

    write_gcloud_file(home.path(), &user());
    let text = error(adc(&[], home.path(), &server, &clock)).await;
    assert!(text.contains("(400): invalid_grant"), "{text}");
}

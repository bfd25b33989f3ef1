//! Servers whose certificates only the user trusts.

#![expect(clippy::unwrap_used, reason = "a test ends where something is not as it must be")]

use std::fs;
use std::process::{Command, Stdio};

use serde_json::json;

use crate::support::chat;
use crate::support::program;
use crate::support::pty::TestHome;
use crate::support::tls_server::{AUTHORITY, TlsServer};

const ONCE: &str = r#"{"retry": {"enabled": false, "provider": {"maxRetries": 0}}}"#;

/// What a prompt to a server at `url` writes to standard output and standard error.
fn ask(url: &str, env: &[(&str, &str)]) -> (String, String) {
    let home = TestHome::with_server(url);
    fs::write(home.agent().join("settings.json"), ONCE).unwrap();
    let mut command = Command::new(env!("CARGO_BIN_EXE_pi"));
    command
        .env_clear()
        .env("HOME", home.home())
        .env("TMPDIR", home.temp())
        .env("PATH", "/usr/bin:/bin")
        .env("PI_LOCAL_SERVERS", "none");
    command.envs(env.iter().copied()).args(["-p", "hello"]);
    let output = command.current_dir(home.project()).stdin(Stdio::null()).output().unwrap();
    (String::from_utf8(output.stdout).unwrap(), String::from_utf8(output.stderr).unwrap())
}

#[test]
fn certificates_of_the_environment_are_trusted_beside_or_instead_of_those_of_the_system() {
    let sets: [&[(&str, &str)]; 3] = [
        &[("NODE_EXTRA_CA_CERTS", AUTHORITY)],
        &[("SSL_CERT_FILE", AUTHORITY)],
        // As in a container that has no certificates.
        &[("NODE_EXTRA_CA_CERTS", AUTHORITY), ("SSL_CERT_DIR", "/missing")],
    ];
    for env in sets {
        let server = TlsServer::start(chat::text("Trusted."));
        let (stdout, stderr) = ask(server.url(), env);
        assert_eq!(stdout, "Trusted.\n", "{env:?}: {stderr}");
        server.join();
    }
}

#[test]
fn unknown_authority_is_refused_and_a_damaged_file_of_certificates_named() {
    let folder = tempfile::tempdir().unwrap();
    let damaged = folder.path().join("company.pem");
    fs::write(&damaged, "-----BEGIN CERTIFICATE-----\nMII\n-----END CERTIFICATE-----\n").unwrap();
    let damaged = damaged.to_str().unwrap();
    let server = TlsServer::start(chat::text("Trusted."));
    let (stdout, stderr) = ask(server.url(), &[("NODE_EXTRA_CA_CERTS", damaged)]);
    assert_eq!(stdout, "");
    let named = format!("NODE_EXTRA_CA_CERTS: {damaged}: certificate 1 is damaged (");
    assert!(stderr.contains(&named), "{stderr}");
    assert!(stderr.contains("correct the path, or unset NODE_EXTRA_CA_CERTS"), "{stderr}");
    assert!(stderr.contains("UnknownIssuer"), "{stderr}");
    // The server waits for a client that trusts it.
    ask(server.url(), &[("SSL_CERT_FILE", AUTHORITY)]);
    server.join();
}

#[test]
fn local_server_is_found_with_a_certificate_of_the_environment() {
    let list = json!({"data": [{"id": "m", "owned_by": "vllm"}]});
    let server = TlsServer::start(list.to_string());
    let home = TestHome::new();
    let mut command = Command::new(env!("CARGO_BIN_EXE_pi"));
    command.env_clear().env("HOME", home.home()).env("TMPDIR", home.temp()).args(["--list-models", "vllm/"]);
    command.env("PI_LOCAL_SERVERS", format!("vllm={}", server.url()));
    command.env("NODE_EXTRA_CA_CERTS", AUTHORITY).env("SSL_CERT_FILE", "/missing");
    let output = command.output().unwrap();
    let (table, stderr) =
        (String::from_utf8(output.stdout).unwrap(), String::from_utf8(output.stderr).unwrap());
    assert!(table.contains("vllm/m"), "{table}{stderr}");
    assert!(stderr.contains("SSL_CERT_FILE is ignored: /missing: No such file or directory"), "{stderr}");
    server.join();
}

#[test]
fn a_certificate_that_is_not_trusted_fails_at_once_with_what_to_do() {
    let server = TlsServer::start(chat::text("Trusted."));
    let home = TestHome::with_server(server.url());
    let output = program::pi(&home, &["-p", "hello"]).output().unwrap();
    let stderr = String::from_utf8(output.stderr).unwrap();
    assert!(stderr.contains("name that authority's certificate in NODE_EXTRA_CA_CERTS"), "{stderr}");
    assert!(!stderr.contains("retrying"), "{stderr}");
    assert_eq!(output.status.code(), Some(1));
    // The server waits for a client that trusts it.
    ask(server.url(), &[("SSL_CERT_FILE", AUTHORITY)]);
    server.join();
}

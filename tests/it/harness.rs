//! The command lines of harnesses, as their sources have them, with a scripted server.

#![expect(clippy::unwrap_used, reason = "a test ends where something is not as it must be")]

use std::fs;
use std::path::Path;
use std::process::{Command, Output};

use serde_json::{Value, json};

use crate::support::chat;
use crate::support::pty::TestHome;
use crate::support::sse_server::{Reply, SseServer};

/// Runs the command of Harbor's adapter in a container whose only program is pi, with the
/// model behind a custom endpoint.
fn harbor(home: &TestHome, url: &str, flags: &str, instruction: &str) -> Output {
    let config = home.home().join("harbor-pi-agent");
    fs::create_dir_all(&config).unwrap();
    let models = json!({"providers": {"harbor-endpoint": {
        "baseUrl": url, "apiKey": "$OPENAI_API_KEY", "api": "openai-completions",
        "models": [{"id": "m-1", "reasoning": true}],
    }}});
    fs::write(config.join("models.json"), models.to_string()).unwrap();
    let logs = home.project().join("logs");
    let (sessions, output) = (logs.join("pi/sessions"), logs.join("pi.txt"));
    let command = format!(
        ". ~/.nvm/nvm.sh; mkdir -p {sessions} && PI_CODING_AGENT_DIR={config} pi --print --mode json --session-dir \
         {sessions} {flags} --provider harbor-endpoint --model m-1 --thinking low '{instruction}' 2>&1 </dev/null | \
         grep -v '\"type\":\"message_update\"' | stdbuf -oL tee {output}",
        sessions = sessions.display(),
        config = config.display(),
        output = output.display(),
    );
    fs::create_dir_all(home.home().join(".nvm")).unwrap();
    fs::write(home.home().join(".nvm/nvm.sh"), "").unwrap();
    let program = Path::new(env!("CARGO_BIN_EXE_pi")).parent().unwrap();
    let path = format!("{}:/usr/bin:/bin", program.display());
    let mut bash = Command::new("bash");
    bash.args(["-c", &format!("set -o pipefail; {command}")]).current_dir(home.project());
    bash.env_clear()
        .env("HOME", home.home())
        .env("TMPDIR", home.temp())
        .env("PATH", path)
        .env("OPENAI_API_KEY", "k");
    bash.output().unwrap()
}

fn sessions(home: &TestHome) -> Vec<String> {
    let folder = home.project().join("logs/pi/sessions");
    let files = fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path());
    let files = files.filter(|path| path.extension().is_some_and(|extension| extension == "jsonl"));
    files.map(|path| fs::read_to_string(path).unwrap()).collect()
}

#[tokio::test(flavor = "multi_thread")]
async fn harness_command_of_the_original_works_unchanged() {
    let call = chat::calls(&[("bash", json!({ "command": "echo made > made.txt" }))]);
    let replies = [call, chat::text("Made."), chat::text("Again.")].map(Reply::sse);
    let server = SseServer::start(replies).await;
    let (home, url) = (TestHome::new(), server.url().to_owned());
    tokio::task::spawn_blocking(move || {
        let output = harbor(&home, &url, "", "make it");
        let text = String::from_utf8(output.stdout).unwrap();
        assert!(output.status.success(), "{text}");
        let lines: Vec<Value> = text.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
        assert!(lines.iter().all(|line| line["type"] != "message_update"));
        assert_eq!(lines.last().unwrap()["type"], "agent_settled");
        assert_eq!(fs::read_to_string(home.project().join("made.txt")).unwrap(), "made\n");
        // Harbor counts lines to know where a resumed run begins.
        let [first] = sessions(&home).try_into().unwrap();
        assert!(first.ends_with('\n'));

        assert!(harbor(&home, &url, "--continue", "and again").status.success());
        let [both] = sessions(&home).try_into().unwrap();
        assert!(both.starts_with(&first) && both.len() > first.len());
    })
    .await
    .unwrap();
    assert_eq!(server.requests().len(), 3);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_limit_of_turns_ends_with_a_code_that_the_adapter_turns_into_success() {
    let call = || chat::calls(&[("bash", json!({ "command": "true" }))]);
    let server = SseServer::start([Reply::sse(call()), Reply::sse(call())]).await;
    let (home, url) = (TestHome::new(), server.url().to_owned());
    tokio::task::spawn_blocking(move || {
        let output = harbor(&home, &url, "--max-turns 1", "go on");
        assert_eq!(output.status.code(), Some(3));
        let text = String::from_utf8(output.stdout).unwrap();
        assert!(text.contains("\"type\":\"agent_settled\""), "{text}");
    })
    .await
    .unwrap();
    let adapter = fs::read_to_string(crate::docs::root().join("contrib/harbor/pi_agent.py")).unwrap();
    assert!(adapter.lines().count() <= 40);
    assert!(adapter.contains("[ $code = 3 ] && code=0") && adapter.contains("--max-turns {turns}"));
}

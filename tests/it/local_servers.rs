//! Model servers on this machine are found, and others are left alone.

#![expect(clippy::unwrap_used, reason = "a test ends where something is not as it must be")]

use std::process::Command;
use std::time::Duration;

use pi::ai::{Catalog, LocalAddresses, TestBarrier, Transport, discover};
use pi::config::{Credentials, Env};
use ratatui::layout::Size;
use serde_json::{Value, json};

use crate::support::pty::{Pty, TestHome};
use crate::support::sse_server::{Reply, SseServer};
use crate::support::tls_server::{AUTHORITY, TlsServer};

fn json(path: &str, body: &Value) -> Reply {
    Reply::status(200, &[("content-type", "application/json")], &body.to_string()).on(path)
}

/// The models a server of kind `id` has: reference, window, whether it thinks and sees.
async fn found(id: &str, replies: impl IntoIterator<Item = Reply>) -> Vec<String> {
    let server = SseServer::start(replies).await;
    let addresses = LocalAddresses::parse(&format!("{id}={}", server.url()));
    let models = discover(&addresses, &Transport::new()).await.into_iter().flat_map(|(_, models)| models);
    models
        .map(|model| {
            assert_eq!(model.base_url, format!("{}/v1", server.url()));
            let thinks = if model.reasoning { " thinks" } else { "" };
            let sees = if model.reads_images() { " sees" } else { "" };
            format!("{} {}{thinks}{sees}", model.reference(), model.context_window)
        })
        .collect()
}

#[tokio::test]
async fn ollama_tells_what_its_models_can_do() {
    let tags = json!({"models": [{"name": "qwen3:8b"}, {"name": "nomic-embed-text"}, {"name": "gemma3:4b"}]});
    let running = json!({"models": [{"name": "gemma3:4b", "context_length": 4096}]});
    let thinks = json!({"capabilities": ["completion", "tools", "thinking"], "model_info": {"q.context_length": 40960}});
    let embeds = json!({"capabilities": ["embedding"]});
    let sees = json!({"capabilities": ["completion", "vision"], "model_info": {"g.context_length": 131072}});
    let replies = [
        json("/api/tags", &tags),
        json("/api/ps", &running),
        json("/api/show", &sees).about("gemma3:4b"),
        json("/api/show", &embeds).about("nomic-embed-text"),
        json("/api/show", &thinks).about("qwen3:8b"),
    ];
    let models = found("ollama", replies).await;
    assert_eq!(models, ["ollama/qwen3:8b 40960 thinks", "ollama/gemma3:4b 4096 sees"]);
}

#[tokio::test(start_paused = true)]
async fn a_look_ends_in_time_with_what_was_said() {
    let (late, never) = (TestBarrier::new(), TestBarrier::new());
    let tags = json!({"models": [{"name": "m"}]}).to_string();
    let head = format!("HTTP/1.1 200 OK\r\ncontent-length: {}\r\n\r\n", tags.len());
    let opening = tokio::spawn({
        let late = late.clone();
        async move {
            tokio::time::sleep(Duration::from_millis(400)).await;
            late.open();
        }
    });
    let start = tokio::time::Instant::now();
    let replies = [
        Reply::raw(head).gate(&late).piece(tags).on("/api/tags"),
        json("/api/ps", &json!({})),
        Reply::raw("").gate(&never).on("/api/show"),
    ];
    assert_eq!(found("ollama", replies).await, ["ollama/m 128000"]);
    assert_eq!(start.elapsed().as_millis(), 600);
    opening.await.unwrap();
}

#[tokio::test]
async fn a_server_that_says_too_much_is_cut_short() {
    let many: Vec<Value> = (0..500).map(|n| json!({"id": format!("m{n}"), "owned_by": "vllm"})).collect();
    let models = found("vllm", [json("/v1/models", &json!({ "data": many }))]).await;
    assert_eq!((models.len(), models[199].as_str()), (200, "vllm/m199 128000"));
    let huge = json!({"data": [{"id": "m", "owned_by": "vllm"}], "rest": "x".repeat(5 << 20)});
    assert_eq!(found("vllm", [json("/v1/models", &huge)]).await, [""; 0]);
}

#[test]
fn a_server_with_a_certificate_is_found() {
    let list = json!({"data": [{"id": "m", "owned_by": "vllm", "max_model_len": 16384}]});
    let server = TlsServer::start(list.to_string());
    let home = TestHome::new();
    let mut command = Command::new(env!("CARGO_BIN_EXE_pi"));
    command.env_clear().env("HOME", home.home()).env("TMPDIR", home.temp()).args(["--list-models", "vllm/"]);
    command.env("PI_LOCAL_SERVERS", format!("vllm={}", server.url()));
    command.env("SSL_CERT_FILE", AUTHORITY);
    let table = String::from_utf8(command.output().unwrap().stdout).unwrap();
    assert!(table.contains("vllm/m"), "{table}");
    server.join();
}

#[tokio::test]
async fn lm_studio_tells_what_is_loaded() {
    let list = json!({"data": [
        {"id": "qwen", "type": "llm", "state": "loaded", "max_context_length": 131072, "loaded_context_length": 8192},
        {"id": "pixtral", "type": "vlm", "state": "not-loaded", "max_context_length": 65536},
        {"id": "nomic", "type": "embeddings", "max_context_length": 2048},
    ]});
    let models = found("lmstudio", [json("/api/v0/models", &list)]).await;
    assert_eq!(models, ["lmstudio/qwen 8192", "lmstudio/pixtral 65536 sees"]);
}

#[tokio::test]
async fn llama_cpp_tells_the_window_it_was_started_with() {
    let list =
        json!({"data": [{"id": "/models/q.gguf", "owned_by": "llamacpp", "meta": {"n_ctx_train": 32768}}]});
    let props = json!({"default_generation_settings": {"n_ctx": 4096}, "modalities": {"vision": true}});
    let models = found("llama.cpp", [json("/v1/models", &list), json("/props", &props)]).await;
    assert_eq!(models, ["llama.cpp//models/q.gguf 4096 sees"]);
    assert_eq!(found("llama.cpp", [json("/v1/models", &list)]).await, ["llama.cpp//models/q.gguf 32768"]);
}

#[tokio::test]
async fn vllm_tells_its_window() {
    let list = json!({"data": [{"id": "m", "owned_by": "vllm", "max_model_len": 16384}]});
    assert_eq!(found("vllm", [json("/v1/models", &list)]).await, ["vllm/m 16384"]);
}

#[tokio::test]
async fn other_servers_on_the_port_are_ignored() {
    for id in ["ollama", "lmstudio", "llama.cpp", "vllm"] {
        let html = Reply::status(200, &[("content-type", "text/html")], "<html>my web site</html>");
        assert_eq!(found(id, [html.clone(), html]).await, [""; 0], "{id}");
        assert_eq!(found(id, []).await, [""; 0], "{id}");
        let foreign = json!({"data": [{"id": "x"}]});
        let paths = ["/v1/models", "/props", "/api/v0/models", "/api/tags", "/api/ps"];
        assert_eq!(found(id, paths.map(|path| json(path, &foreign))).await, [""; 0], "{id}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_server_on_this_machine_is_offered_when_nothing_is_configured() {
    let list = json!({"data": [{"id": "qwen", "type": "llm", "loaded_context_length": 8192}]});
    let answer = "data: {\"choices\":[{\"delta\":{\"content\":\"Hello from here.\"},\"finish_reason\":\"stop\"}]}\n\ndata: [DONE]\n\n";
    let replies = [
        json("/api/v0/models", &list),
        json("/api/v0/models", &list),
        Reply::sse(answer).on("/v1/chat/completions"),
    ];
    let server = SseServer::start(replies).await;
    let home = TestHome::new();
    let servers = format!("lmstudio={}", server.url());
    let size = Size { width: 100, height: 30 };
    let pty = Pty::start_in(&home, &home.project(), size, &[], &[("PI_LOCAL_SERVERS", &servers)]);
    pty.wait_text("Found local models: LM Studio with 1 model. Use /model to choose one.");
    pty.keys("/model qwen\r");
    pty.wait_text("qwen · thinking off");
    pty.wait_text("0.0%/8.2k");
    pty.keys("hello\r");
    pty.wait_text("Hello from here.");
    let asked = server.requests().into_iter().find(|request| request.path == "/v1/chat/completions").unwrap();
    assert_eq!(asked.body["model"], "qwen");
}

#[tokio::test(flavor = "multi_thread")]
async fn models_of_this_machine_are_listed() {
    let list = json!({"data": [{"id": "m", "owned_by": "vllm", "max_model_len": 16384}]});
    let server = SseServer::start([json("/v1/models", &list)]).await;
    let home = TestHome::new();
    let mut command = Command::new(env!("CARGO_BIN_EXE_pi"));
    command.env_clear().env("HOME", home.home()).env("TMPDIR", home.temp()).args(["--list-models", "vllm/"]);
    command.env("PI_LOCAL_SERVERS", format!("vllm={}", server.url()));
    let output = tokio::task::spawn_blocking(move || command.output().unwrap()).await.unwrap();
    let table = String::from_utf8(output.stdout).unwrap();
    let row: Vec<&str> = table.lines().nth(1).unwrap().split_whitespace().collect();
    assert_eq!(row, ["vllm/m", "16k", "16k", "no", "no", "yes"], "{table}");
}

/// `pi --list-models` of a user with a key for a provider that has its own list.
async fn listed(server: &SseServer, env: &[(&str, &str)], search: &str) -> (String, String) {
    let home = TestHome::new();
    let models = json!({"providers": {"nvidia": {
        "baseUrl": format!("{}/v1", server.url()),
        "headers": {"x-team": "$TEAM"},
        "models": [{"id": "mine", "contextWindow": 5000}],
    }}});
    std::fs::write(home.agent().join("models.json"), models.to_string()).unwrap();
    let mut command = Command::new(env!("CARGO_BIN_EXE_pi"));
    command
        .env_clear()
        .env("HOME", home.home())
        .env("TMPDIR", home.temp())
        .env("PI_LOCAL_SERVERS", "none")
        .env("TEAM", "t1");
    command.envs(env.iter().copied()).args(["--list-models", search]);
    let output = tokio::task::spawn_blocking(move || command.output().unwrap()).await.unwrap();
    (String::from_utf8(output.stdout).unwrap(), String::from_utf8(output.stderr).unwrap())
}

#[tokio::test(flavor = "multi_thread")]
async fn a_provider_with_a_list_of_its_own_is_asked_for_it() {
    let list = json!({"data": [
        {"id": "meta/llama", "context_length": 32768, "supports_image_input": true},
        {"id": "mine", "context_length": 1},
        {"id": "embed", "type": "embedding"},
    ]});
    let server = SseServer::start([json("/v1/models", &list)]).await;
    let (table, problems) = listed(&server, &[("NVIDIA_API_KEY", "k1")], "nvidia/").await;
    let rows: Vec<Vec<&str>> = table.lines().skip(1).map(|row| row.split_whitespace().collect()).collect();
    assert_eq!(
        rows,
        [
            ["nvidia/mine", "5k", "16k", "no", "no", "yes"],
            ["nvidia/meta/llama", "32k", "16k", "no", "yes", "yes"],
        ],
        "{problems}"
    );
    let asked = &server.requests()[0];
    assert_eq!((asked.header("authorization"), asked.header("x-team")), (Some("Bearer k1"), Some("t1")));

    // Nobody is asked without a key; who does not answer is named in one line.
    let server = SseServer::start([]).await;
    assert_eq!(listed(&server, &[], "nvidia/").await.1, "");
    assert!(server.requests().is_empty());
    let (table, problems) = listed(&server, &[("NVIDIA_API_KEY", "k1")], "nvidia/").await;
    assert_eq!(problems, "pi: nvidia: 500 for its list of models\n");
    assert_eq!(table.lines().count(), 2);
    let cloudflare = [("CLOUDFLARE_API_KEY", "k1"), ("CLOUDFLARE_ACCOUNT_ID", "a")];
    let problems = listed(&server, &cloudflare[..1], "nvidia/").await.1;
    assert!(
        problems.contains("no base URL for cloudflare-ai-gateway; set CLOUDFLARE_ACCOUNT_ID"),
        "{problems}"
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn a_model_of_such_a_list_is_chosen_and_asked() {
    let answer = "data: {\"choices\":[{\"delta\":{\"content\":\"Hello from afar.\"},\"finish_reason\":\"stop\"}]}\n\ndata: [DONE]\n\n";
    let list = json!([{"id": "meta/llama", "context_length": 8192}]);
    // One look at the start, maybe another one for /model.
    let lists = [json("/v1/models", &list), json("/v1/models", &list)];
    let server =
        SseServer::start(lists.into_iter().chain([Reply::sse(answer).on("/v1/chat/completions")])).await;
    let home = TestHome::new();
    let models = json!({"providers": {"nvidia": {"baseUrl": format!("{}/v1", server.url())}}});
    std::fs::write(home.agent().join("models.json"), models.to_string()).unwrap();
    let size = Size { width: 100, height: 30 };
    let env = [("PI_LOCAL_SERVERS", "none"), ("NVIDIA_API_KEY", "k1")];
    let pty = Pty::start_in(&home, &home.project(), size, &[], &env);
    pty.wait_idle();
    pty.keys("/model\r");
    pty.wait_text("meta/llama");
    pty.keys("llama\r");
    pty.wait_text("0.0%/8.2k");
    pty.keys("hello\r");
    pty.wait_text("Hello from afar.");
    let requests = server.requests();
    let asked = requests.iter().find(|request| request.path == "/v1/chat/completions").unwrap();
    assert_eq!(asked.body["model"], "meta/llama");
}

#[tokio::test]
async fn a_list_is_asked_for_once() {
    let server =
        SseServer::start([Reply::status(503, &[], ""), json("/models", &json!([{"id": "m"}]))]).await;
    let mut catalog = Catalog::builtin();
    let models = json!({"providers": {"nvidia": {"baseUrl": server.url()}}});
    catalog.add_user_models(&models.to_string()).unwrap();
    let credentials = Credentials::new(Env::of(&[("NVIDIA_API_KEY", "k")]));
    // Failed requests are retried.
    assert_eq!(credentials.model_lists(&catalog).await.problems, ["nvidia: 503 for its list of models"]);
    for _ in 0..2 {
        let lists = credentials.model_lists(&catalog).await;
        assert_eq!((lists.models.len(), lists.models[0].1[0].reference()), (1, "nvidia/m".to_owned()));
    }
    assert_eq!(server.requests().len(), 2);
    credentials.add_known_lists(&mut catalog);
    assert!(catalog.get("nvidia", "m").is_some());
}

/// Runs print mode for a user whose `models.json` has the address of a server and nothing else.
async fn print_with_address(home: &TestHome, base_url: &str, args: &'static [&str]) -> (String, String) {
    let models = json!({"providers": {"home": {"baseUrl": base_url}}});
    std::fs::write(home.agent().join("models.json"), models.to_string()).unwrap();
    let mut command = Command::new(env!("CARGO_BIN_EXE_pi"));
    command.env_clear().env("HOME", home.home()).env("TMPDIR", home.temp()).env("PI_LOCAL_SERVERS", "none");
    command.current_dir(home.project()).args(args).stdin(std::process::Stdio::null());
    let output = tokio::task::spawn_blocking(move || command.output().unwrap()).await.unwrap();
    (String::from_utf8(output.stdout).unwrap(), String::from_utf8(output.stderr).unwrap())
}

fn answer(text: &str) -> Reply {
    let chunk = json!({"choices": [{"delta": {"content": text}, "finish_reason": "stop"}]});
    Reply::sse(format!("data: {chunk}\n\ndata: [DONE]\n\n")).on("/v1/chat/completions")
}

#[tokio::test(flavor = "multi_thread")]
async fn address_of_a_server_is_enough_and_its_list_is_kept_for_the_next_start() {
    let list = json!({"data": [{"id": "qwen", "max_model_len": 9000}, {"id": "other"}]});
    let server = SseServer::start([json("/v1/models", &list), answer("one"), answer("two")]).await;
    let home = TestHome::new();
    let base_url = format!("{}/v1", server.url());
    assert_eq!(print_with_address(&home, &base_url, &["-p", "hi"]).await, ("one\n".into(), String::new()));
    assert_eq!(print_with_address(&home, &base_url, &["-p", "hi"]).await, ("two\n".into(), String::new()));
    let requests = server.requests();
    let paths: Vec<&str> = requests.iter().map(|request| request.path.as_str()).collect();
    assert_eq!(paths, ["/v1/models", "/v1/chat/completions", "/v1/chat/completions"]);
    assert_eq!(requests[1].body["model"], "qwen");
    assert!(requests[1].body["max_tokens"].as_u64().is_some_and(|limit| limit < 9000));
}

#[tokio::test(flavor = "multi_thread")]
async fn address_without_path_is_completed_and_a_named_model_gets_its_window() {
    let list = json!({"data": [{"id": "first"}, {"id": "qwen", "max_model_len": 9000}]});
    let missing = Reply::status(404, &[], "no").on("/models");
    let server = SseServer::start([missing, json("/v1/models", &list), answer("one")]).await;
    let home = TestHome::new();
    let args = &["--model", "home/qwen", "-p", "hi"];
    assert_eq!(print_with_address(&home, server.url(), args).await.0, "one\n");
    let asked = server.requests().pop().unwrap();
    assert_eq!((asked.path.as_str(), &asked.body["model"]), ("/v1/chat/completions", &json!("qwen")));
    assert!(asked.body["max_tokens"].as_u64().is_some_and(|limit| limit < 9000));
}

#[tokio::test(flavor = "multi_thread")]
async fn server_without_a_list_is_reported_and_its_models_can_be_named() {
    let missing =
        [Reply::status(500, &[], "").on("/v1/models"), Reply::status(500, &[], "").on("/v1/models")];
    let server = SseServer::start(missing.into_iter().chain([answer("one")])).await;
    let home = TestHome::new();
    let base_url = format!("{}/v1", server.url());
    let (out, err) = print_with_address(&home, &base_url, &["-p", "hi"]).await;
    assert_eq!(out, "");
    assert!(err.contains("home: 500 for its list of models") && err.contains("--model home/ID"), "{err}");
    let (out, err) = print_with_address(&home, &base_url, &["--model", "home/qwen", "-p", "hi"]).await;
    assert_eq!(out, "one\n");
    assert!(err.contains("home: 500 for its list of models"), "{err}");
}

#[tokio::test(flavor = "multi_thread")]
async fn window_of_a_named_model_arrives_after_the_first_frame() {
    let list = json!({"data": [{"id": "qwen", "max_model_len": 8192}]});
    let server = SseServer::start([json("/v1/models", &list)]).await;
    let home = TestHome::new();
    let models = json!({"providers": {"home": {"baseUrl": format!("{}/v1", server.url())}}});
    std::fs::write(home.agent().join("models.json"), models.to_string()).unwrap();
    let size = Size { width: 100, height: 30 };
    let args = ["--model", "home/qwen"];
    let pty = Pty::start_in(&home, &home.project(), size, &args, &[("PI_LOCAL_SERVERS", "none")]);
    pty.wait_text("0.0%/8.2k");
}

#[tokio::test(flavor = "multi_thread")]
async fn model_that_a_server_no_longer_lists_is_reported_once_in_every_mode_without_a_terminal() {
    let list = json!({"data": [{"id": "old", "max_model_len": 9000}]});
    let modes: [&'static [&'static str]; 3] =
        [&["-p", "-c", "hi"], &["--mode", "json", "-c", "hi"], &["--mode", "rpc", "-c"]];
    for args in modes {
        let server = SseServer::start([json("/v1/models", &list), answer("one"), answer("two")]).await;
        let home = TestHome::new();
        let base_url = format!("{}/v1", server.url());
        assert_eq!(print_with_address(&home, &base_url, &["-p", "hi"]).await.0, "one\n");
        let cache = home.agent().join("model-lists.json");
        let renamed = std::fs::read_to_string(&cache).unwrap().replace("\"old\"", "\"new\"");
        std::fs::write(&cache, renamed).unwrap();
        let (_, err) = print_with_address(&home, &base_url, args).await;
        let expected = "Could not restore model home/old. Using home/new.";
        assert_eq!(err.matches(expected).count(), 1, "{args:?}: {err}");
    }
}

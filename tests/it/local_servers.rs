//! Model servers on this machine are found, and others are left alone.

use std::process::Command;

use pi::ai::{LocalAddresses, discover};
use ratatui::layout::Size;
use serde_json::{Value, json};

use crate::support::pty::{Pty, TestHome};
use crate::support::sse_server::{Reply, SseServer};

fn json(path: &str, body: &Value) -> Reply {
    Reply::status(200, &[("content-type", "application/json")], &body.to_string()).on(path)
}

/// The models a server of kind `id` has: reference, window, whether it thinks and sees.
async fn found(id: &str, replies: impl IntoIterator<Item = Reply>) -> Vec<String> {
    let server = SseServer::start(replies).await;
    let addresses = LocalAddresses::parse(&format!("{id}={}", server.url()));
    let models = discover(&addresses).await.into_iter().flat_map(|(_, models)| models);
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
    let thinker = json!({"capabilities": ["completion", "tools", "thinking"], "model_info": {"q.context_length": 40960}});
    let replies = [
        json("/api/tags", &tags),
        json("/api/ps", &running),
        // The same answer to every question but one.
        json("/api/show", &thinker),
        json("/api/show", &thinker),
        json("/api/show", &thinker),
    ];
    let models = found("ollama", replies).await;
    assert_eq!(
        models,
        [
            "ollama/qwen3:8b 40960 thinks",
            "ollama/nomic-embed-text 40960 thinks",
            "ollama/gemma3:4b 4096 thinks"
        ]
    );
    let embeds = json!({"capabilities": ["embedding"]});
    let replies = [json("/api/tags", &json!({"models": [{"name": "e"}]})), json("/api/show", &embeds)];
    assert_eq!(found("ollama", replies).await, [""; 0]);
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
async fn whoever_else_answers_is_left_alone() {
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
    pty.wait_text("Found on this machine: LM Studio with 1 model. /model chooses one.");
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
    command.env_clear().env("HOME", home.home()).args(["--list-models", "vllm/"]);
    command.env("PI_LOCAL_SERVERS", format!("vllm={}", server.url()));
    let output = tokio::task::spawn_blocking(move || command.output().unwrap()).await.unwrap();
    let table = String::from_utf8(output.stdout).unwrap();
    let row: Vec<&str> = table.lines().nth(1).unwrap().split_whitespace().collect();
    assert_eq!(row, ["vllm/m", "16k", "16k", "no", "no", "yes"], "{table}");
}

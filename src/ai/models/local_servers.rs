//! Model servers on this machine, found without configuration.
//!
//! pi queries each kind of server at its default port, with the server's own API,
//! because only that reports the real context window of a model. Other programs on
//! that port are ignored. The search runs only on demand: it takes as long as the
//! slowest server, at most [`LIMIT`] in total. Responses are read up to a maximum
//! size.
//!
//! Facts: the API pages of Ollama, LM Studio, llama.cpp's server and vLLM, as of
//! autumn 2026.

use std::time::Duration;

use futures_util::future::{join, join_all};
use futures_util::{StreamExt as _, stream};
use reqwest::{Client, RequestBuilder};
use serde_json::{Value, json};
use tokio::time::{Instant, timeout_at};

use super::model::{Modality, Model};
use crate::ai::messages::Api;
use crate::ai::transport::{Transport, read_whole};

/// Maximum duration of a search. Servers that have not answered every request by then
/// are listed with the facts they have reported.
const LIMIT: Duration = Duration::from_millis(600);
/// Maximum size of a response, uncompressed.
const ANSWER_LIMIT_BYTES: usize = 4 << 20;
/// Maximum number of models per server.
const MAX_MODELS: usize = 200;
/// Number of concurrent model queries per server.
const AT_ONCE: usize = 16;

/// A kind of server: its provider id, name and default addresses.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct LocalServer {
    /// The provider id of its models.
    pub id: &'static str,
    /// Its name for people.
    pub name: &'static str,
    /// Scheme, host and port. All are queried, and the first that answers counts.
    pub addresses: &'static [&'static str],
}

/// TABLE: the servers pi looks for.
pub const LOCAL_SERVERS: &[LocalServer] = &[
    LocalServer { id: "ollama", name: "Ollama", addresses: &["http://localhost:11434"] },
    LocalServer { id: "lmstudio", name: "LM Studio", addresses: &["http://localhost:1234"] },
    // The server's default port was 8080 until autumn 2026.
    LocalServer {
        id: "llama.cpp",
        name: "llama.cpp",
        addresses: &["http://localhost:9931", "http://localhost:8080"],
    },
    LocalServer { id: "vllm", name: "vLLM", addresses: &["http://localhost:8000"] },
];

/// The server whose models have the provider id `id`.
pub fn local_server(id: &str) -> Option<&'static LocalServer> {
    LOCAL_SERVERS.iter().find(|server| server.id == id)
}

/// Addresses of the servers, if they differ from the defaults.
#[derive(Debug, Clone, Default)]
pub struct LocalAddresses {
    /// By provider id: scheme, host and port.
    pub other: Vec<(String, String)>,
    /// Whether only these addresses are searched.
    pub only_these: bool,
}

impl LocalAddresses {
    /// The default addresses, except Ollama's if its variable is set.
    ///
    /// `ollama_host` is a host, `host:port` or URL; the address to listen on,
    /// `0.0.0.0`, means this machine.
    pub fn with_ollama(ollama_host: Option<&str>) -> Self {
        let Some(host) = ollama_host.map(str::trim).filter(|host| !host.is_empty()) else {
            return Self::default();
        };
        // A scheme implies a port, which addresses may omit.
        let (scheme, host, usual_port) = match host.split_once("://") {
            Some((scheme, host)) => (scheme, host, ""),
            None => ("http", host, ":11434"),
        };
        let host = host.trim_end_matches('/').replace("0.0.0.0", "127.0.0.1");
        let has_port = host.rsplit_once(':').is_some_and(|(_, port)| port.parse::<u16>().is_ok());
        let port = if has_port { "" } else { usual_port };
        Self { other: vec![("ollama".to_owned(), format!("{scheme}://{host}{port}"))], only_these: false }
    }

    /// `ID=URL` pairs, separated by spaces or commas. Only these are searched.
    pub fn parse(list: &str) -> Self {
        let pairs = list.split([' ', ',']).filter_map(|pair| pair.split_once('='));
        let other = pairs.map(|(id, url)| (id.to_owned(), url.trim_end_matches('/').to_owned())).collect();
        Self { other, only_these: true }
    }

    /// The addresses of a kind of server, preferred one first; empty if the search skips it.
    pub fn of(&self, server: &LocalServer) -> Vec<String> {
        let other = self.other.iter().find(|(id, _)| id == server.id);
        match other {
            Some((_, address)) => vec![address.clone()],
            None if self.only_these => Vec::new(),
            None => server.addresses.iter().map(|&address| address.to_owned()).collect(),
        }
    }
}

/// The models of all servers that respond, by server. Trusts the certificates that `transport`
/// trusts. Dropping the future cancels the search.
pub async fn discover(
    addresses: &LocalAddresses,
    transport: &Transport,
) -> Vec<(&'static LocalServer, Vec<Model>)> {
    let asked: Vec<(&LocalServer, String)> = LOCAL_SERVERS
        .iter()
        .flat_map(|server| addresses.of(server).into_iter().map(move |address| (server, address)))
        .collect();
    let client = |tls| transport.local_client(tls, LIMIT / 2);
    let (Some(plain), tls) = (client(false), asked.iter().any(|(_, address)| is_https(address))) else {
        return Vec::new();
    };
    // System certificates are read only if a server needs TLS.
    let tls = if tls { client(true) } else { None };
    let deadline = Instant::now() + LIMIT;
    let answers = join_all(asked.into_iter().filter_map(|(server, address)| {
        let client = if is_https(&address) { tls.as_ref()? } else { &plain };
        let at = At { client, server, address, deadline };
        Some(async move { (server, at.models().await) })
    }));
    let mut found: Vec<(&LocalServer, Vec<Model>)> = Vec::new();
    for (server, models) in answers.await {
        let is_known = found.last().is_some_and(|(known, _)| known.id == server.id);
        if !models.is_empty() && !is_known {
            found.push((server, models));
        }
    }
    found
}

fn is_https(address: &str) -> bool {
    address.get(..6).is_some_and(|scheme| scheme.eq_ignore_ascii_case("https:"))
}

/// One server to query.
struct At<'a> {
    client: &'a Client,
    server: &'static LocalServer,
    address: String,
    deadline: Instant,
}

impl At<'_> {
    async fn models(&self) -> Vec<Model> {
        let found = match self.server.id {
            "ollama" => self.ollama().await,
            "lmstudio" => self.get("/api/v0/models").await.map(|list| self.lm_studio(&list)),
            "llama.cpp" => self.llama_cpp().await,
            _ => self.get("/v1/models").await.map(|list| self.vllm(&list)),
        };
        found.unwrap_or_default()
    }

    async fn get(&self, path: &str) -> Option<Value> {
        self.answer(self.client.get(format!("{}{path}", self.address))).await
    }

    /// The JSON response, if it arrives in time and within the size limit.
    async fn answer(&self, request: RequestBuilder) -> Option<Value> {
        let exchange = async {
            let response = request.send().await.ok()?.error_for_status().ok()?;
            read_whole(response, ANSWER_LIMIT_BYTES).await.ok()
        };
        let text = timeout_at(self.deadline, exchange).await.ok()??;
        serde_json::from_str(&text).ok()
    }

    async fn ollama(&self) -> Option<Vec<Model>> {
        let (list, running) = join(self.get("/api/tags"), self.get("/api/ps")).await;
        let (list, running) = (list?, running.unwrap_or_default());
        let names: Vec<&str> = items(&list["models"]).filter_map(|model| model["name"].as_str()).collect();
        let asked: Vec<_> = names.iter().map(|name| self.ollama_details(name)).collect();
        let details: Vec<Option<Value>> = stream::iter(asked).buffered(AT_ONCE).collect().await;
        Some(
            names
                .iter()
                .zip(details)
                .filter_map(|(name, details)| {
                    let details = details.unwrap_or_default();
                    let can = |what: &str| items(&details["capabilities"]).any(|one| one == what);
                    // Models that only create embeddings cannot answer.
                    if can("embedding") && !can("completion") {
                        return None;
                    }
                    let is_it = |model: &&Value| model["name"] == **name;
                    let loaded = items(&running["models"])
                        .find(is_it)
                        .and_then(|model| model["context_length"].as_u64());
                    let mut model = self.model(name, loaded.or_else(|| ollama_context(&details)));
                    model.reasoning = can("thinking");
                    if can("vision") {
                        model.input.push(Modality::Image);
                    }
                    Some(model)
                })
                .collect(),
        )
    }

    async fn ollama_details(&self, name: &str) -> Option<Value> {
        let request = self.client.post(format!("{}/api/show", self.address));
        self.answer(request.json(&json!({ "model": name }))).await
    }

    fn lm_studio(&self, list: &Value) -> Vec<Model> {
        items(&list["data"])
            .filter(|row| matches!(row["type"].as_str(), Some("llm" | "vlm")))
            .filter_map(|row| {
                let loaded = row["loaded_context_length"].as_u64();
                let mut model =
                    self.model(row["id"].as_str()?, loaded.or_else(|| row["max_context_length"].as_u64()));
                if row["type"] == "vlm" {
                    model.input.push(Modality::Image);
                }
                Some(model)
            })
            .collect()
    }

    async fn llama_cpp(&self) -> Option<Vec<Model>> {
        let (list, props) = join(self.get("/v1/models"), self.get("/props")).await;
        let (list, props) = (list?, props.unwrap_or_default());
        let context = props["default_generation_settings"]["n_ctx"].as_u64();
        let is_it = context.is_some() || items(&list["data"]).any(|row| row["owned_by"] == "llamacpp");
        if !is_it {
            return None;
        }
        let models = items(&list["data"]).filter_map(|row| {
            let id = row["id"].as_str()?;
            let mut model = self.model(id, context.or_else(|| row["meta"]["n_ctx_train"].as_u64()));
            // Without an alias, the id is the path of the model file.
            model.name = id.rsplit(['/', '\\']).next().unwrap_or(id).trim_end_matches(".gguf").to_owned();
            if props["modalities"]["vision"] == true {
                model.input.push(Modality::Image);
            }
            Some(model)
        });
        Some(models.collect())
    }

    fn vllm(&self, list: &Value) -> Vec<Model> {
        items(&list["data"])
            .filter(|row| row["owned_by"] == "vllm" || row["max_model_len"].is_u64())
            .filter_map(|row| Some(self.model(row["id"].as_str()?, row["max_model_len"].as_u64())))
            .collect()
    }

    fn model(&self, id: &str, context: Option<u64>) -> Model {
        local_model(self.server, &self.address, id, context)
    }
}

/// A model of a local server; `context` in tokens, if the server reports it.
pub(in crate::ai) fn local_model(
    server: &LocalServer,
    address: &str,
    id: &str,
    context: Option<u64>,
) -> Model {
    let mut model = Model {
        id: id.to_owned(),
        name: id.to_owned(),
        api: Api::OPENAI_COMPLETIONS,
        provider: server.id.to_owned(),
        base_url: format!("{address}/v1"),
        ..Model::default()
    };
    if let Some(context) = context.filter(|context| *context > 0) {
        model.context_window = context;
        model.max_tokens = model.max_tokens.min(context);
    }
    model
}

/// The context window Ollama uses for a model that is not loaded: the parameter set in
/// the model file, otherwise the window the model was trained with.
fn ollama_context(details: &Value) -> Option<u64> {
    let parameters = details["parameters"].as_str().unwrap_or_default();
    let set = parameters.lines().find_map(|line| line.trim().strip_prefix("num_ctx")?.trim().parse().ok());
    let trained = || {
        let info = details["model_info"].as_object()?;
        info.iter().find(|(key, _)| key.ends_with(".context_length"))?.1.as_u64()
    };
    set.or_else(trained)
}

fn items(list: &Value) -> impl Iterator<Item = &Value> {
    list.as_array().into_iter().flatten().take(MAX_MODELS)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ollamas_variable_is_read_as_ollama_does() {
        let check = |host: &str, expected: &str| {
            let addresses = LocalAddresses::with_ollama(Some(host));
            assert_eq!(addresses.of(&LOCAL_SERVERS[0]), [expected], "{host}");
            assert_eq!(addresses.of(&LOCAL_SERVERS[1]), ["http://localhost:1234"]);
        };
        check("", "http://localhost:11434");
        check("0.0.0.0", "http://127.0.0.1:11434");
        check("gpu.lan", "http://gpu.lan:11434");
        check("gpu.lan:8080", "http://gpu.lan:8080");
        check("gpu.lan:8080/", "http://gpu.lan:8080");
        check("https://gpu.lan:443/", "https://gpu.lan:443");
        check("https://gpu.lan", "https://gpu.lan");
        check("http://gpu.lan", "http://gpu.lan");
    }

    #[test]
    fn configured_address_replaces_all_default_addresses() {
        let llama = local_server("llama.cpp").unwrap();
        let both = ["http://localhost:9931", "http://localhost:8080"];
        assert_eq!(LocalAddresses::default().of(llama), both);
        assert_eq!(LocalAddresses::parse("llama.cpp=http://gpu:1").of(llama), ["http://gpu:1"]);
        assert_eq!(LocalAddresses::parse("none").of(llama), [""; 0]);
    }

    #[test]
    fn ollama_gives_what_is_set_before_what_was_trained() {
        let trained = json!({"model_info": {"general.name": "q", "qwen3.context_length": 40960}});
        assert_eq!(ollama_context(&trained), Some(40_960));
        let set = json!({"parameters": "stop \"x\"\nnum_ctx    8192", "model_info": {"a.context_length": 1}});
        assert_eq!(ollama_context(&set), Some(8_192));
        assert_eq!(ollama_context(&Value::Null), None);
    }
}

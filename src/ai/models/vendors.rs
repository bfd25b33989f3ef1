//! TABLE: vendors, with all that is known of each: addresses, the environment variables of
//! keys, models, and how its server differs from others. The other tables are derived.
//!
//! A vendor with a supported API is one row here and its models in
//! `data/models`, or only a row here if the service lists its own models. Addresses
//! and variables come from the vendors' documentation, as of autumn 2026.

use super::image_limits::{self, ImageRules};
use super::model::Model;
use super::vertex::VERTEX_TEMPLATE;
use crate::ai::messages::Usage;
use crate::util::embedded::embedded_text;

/// One service that offers models.
#[derive(Debug, Clone, Copy)]
pub struct Vendor {
    /// The provider id in files, sessions and references.
    pub id: &'static str,
    /// The display name.
    pub name: &'static str,
    /// Empty if each customer has a different address.
    pub base_url: &'static str,
    /// Environment variables for the key, in order of preference; empty if
    /// the service accepts only accounts.
    pub env_keys: &'static [EnvKey],
    /// The default model of the provider; `None` if no models are built in and the
    /// vendor's own list is queried.
    pub default_model: Option<&'static str>,
    /// Whether requests cost dollars.
    pub pricing: Pricing,
    pub(in crate::ai) models: Models,
    /// Requests to its models depend on it.
    pub(in crate::ai) server: Server,
}

/// How a vendor charges for requests.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Pricing {
    /// Every token has a price.
    PerToken,
    /// A flat-rate plan: requests have no price of their own.
    Plan,
    /// A plan for users who signed in to an account, per token with a key.
    PlanWithAccount,
}

/// The models of a vendor.
#[derive(Debug, Clone, Copy)]
pub(in crate::ai) enum Models {
    /// Built in: the JSON of a file in `data/models`.
    Listed(&'static str),
    /// Those of the vendor with this id.
    Of(&'static str),
    /// The vendor's own list, which is queried. The models resend their thinking if
    /// `thinking_in_history`.
    Queried { thinking_in_history: bool },
}

/// What is known of a server apart from its API.
#[derive(Debug, Clone, Copy)]
pub(in crate::ai) struct Server {
    pub(in crate::ai) kind: ServerKind,
    /// Parts of the base URLs that lead to it.
    hosts: &'static [&'static str],
    /// Ids of its provider in `models.json`, besides the vendor's own.
    aliases: &'static [&'static str],
    pub(in crate::ai) images: Option<ImageRules>,
    /// Accepts images in requests, but no URLs of images.
    pub(in crate::ai) reads_bytes_only: bool,
    /// Answers a conversation that is too long with an error without a body.
    pub(in crate::ai) empty_error_is_overflow: bool,
}

/// The operator of a server, as far as the dialect depends on it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(in crate::ai) enum ServerKind {
    OpenAi,
    Azure,
    OpenRouter,
    VercelGateway,
    Groq,
    DeepSeek,
    Mistral,
    Xai,
    Cerebras,
    Moonshot,
    Zai,
    Together,
    Qwen,
    Copilot,
    Snowflake,
    Vllm,
    Unknown,
}

/// Only its API is known.
const UNKNOWN: Server = Server {
    kind: ServerKind::Unknown,
    hosts: &[],
    aliases: &[],
    images: None,
    reads_bytes_only: false,
    empty_error_is_overflow: false,
};

/// <https://platform.moonshot.ai/docs/guide/use-kimi-vision-model>
const MOONSHOT: Server = Server { kind: ServerKind::Moonshot, reads_bytes_only: true, ..UNKNOWN };

const QWEN: Server = Server { kind: ServerKind::Qwen, ..UNKNOWN };
/// The addresses of both Qwen token plans, for teams and for individuals.
const QWEN_PLAN: &str = "https://token-plan.maas.qwencloudapi.com/compatible-mode/v1";
const QWEN_PLAN_CN: &str = "https://token-plan.maas.qianwenaiapi.com/compatible-mode/v1";

/// Servers known by address or provider id whose operators are no vendors here.
const OTHER_SERVERS: &[Server] = &[
    Server {
        kind: ServerKind::Azure,
        hosts: &[".cognitiveservices.azure.com", ".ai.azure.com"],
        aliases: &["azure-openai"],
        ..UNKNOWN
    },
    Server {
        hosts: &["dashscope", ".maas.qwencloudapi.com", ".maas.qianwenaiapi.com"],
        aliases: &["alibaba", "qwen"],
        ..QWEN
    },
    Server {
        kind: ServerKind::Snowflake,
        hosts: &["snowflakecomputing.com"],
        aliases: &["snowflake"],
        ..UNKNOWN
    },
    Server {
        kind: ServerKind::Vllm,
        hosts: &["localhost:8000", "127.0.0.1:8000"],
        aliases: &["vllm"],
        ..UNKNOWN
    },
    // <https://github.com/ollama/ollama/blob/main/docs/openai.md>,
    // <https://lmstudio.ai/docs/typescript/llm-prediction/image-input>.
    Server { aliases: &["ollama", "lmstudio"], reads_bytes_only: true, ..UNKNOWN },
];

impl Server {
    /// The server of `model` among those that fit: by base URL, otherwise by provider id.
    pub(in crate::ai) fn of(model: &Model, fits: impl Fn(&Self) -> bool) -> Option<&'static Self> {
        let by_url = servers().find(|(_, server)| fits(server) && server.is_at(&model.base_url));
        let by_id = || servers().find(|(id, server)| fits(server) && server.is_called(id, &model.provider));
        by_url.or_else(by_id).map(|(_, server)| server)
    }

    /// Whether base URL or provider id of `model` name a server that fits.
    pub(in crate::ai) fn is_any(model: &Model, fits: impl Fn(&Self) -> bool) -> bool {
        servers().any(|(id, server)| {
            fits(server) && (server.is_at(&model.base_url) || server.is_called(id, &model.provider))
        })
    }

    fn is_at(&self, base_url: &str) -> bool {
        self.hosts.iter().any(|host| base_url.contains(host))
    }

    fn is_called(&self, vendor: &str, provider: &str) -> bool {
        (vendor == provider && !vendor.is_empty()) || self.aliases.contains(&provider)
    }
}

/// All known servers, with the ids of those of vendors.
fn servers() -> impl Iterator<Item = (&'static str, &'static Server)> {
    let of_vendors = VENDORS.iter().map(|vendor| (vendor.id, &vendor.server));
    of_vendors.chain(OTHER_SERVERS.iter().map(|server| ("", server)))
}

/// Whether base URL or provider id of `model` name the vendor `id`.
pub(in crate::ai) fn is_of(model: &Model, id: &str) -> bool {
    model.provider == id || vendor(id).is_some_and(|vendor| vendor.server.is_at(&model.base_url))
}

/// An environment variable with a key, and how the key is sent.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct EnvKey {
    /// The name of the variable.
    pub name: &'static str,
    /// Whether the key is sent as `Authorization: Bearer`, whichever header the API uses.
    pub bearer: bool,
}

const fn key(name: &'static str) -> EnvKey {
    EnvKey { name, bearer: false }
}

const fn bearer(name: &'static str) -> EnvKey {
    EnvKey { name, bearer: true }
}

/// A Chat Completions vendor whose models come from its own list. Its
/// address may contain variables, as `{NAME}`.
const fn listing(
    id: &'static str,
    name: &'static str,
    base_url: &'static str,
    env_keys: &'static [EnvKey],
) -> Vendor {
    let models = Models::Queried { thinking_in_history: false };
    let pricing = Pricing::PerToken;
    Vendor { id, name, base_url, env_keys, default_model: None, pricing, models, server: UNKNOWN }
}

impl Vendor {
    const fn on(self, server: Server) -> Self {
        Self { server, ..self }
    }

    const fn plan(self) -> Self {
        Self { pricing: Pricing::Plan, ..self }
    }

    const fn thinking_in_history(self) -> Self {
        Self { models: Models::Queried { thinking_in_history: true }, ..self }
    }
}

/// In the order of preference if several keys are set.
pub const VENDORS: &[Vendor] = &[
    Vendor {
        id: "anthropic",
        name: "Anthropic",
        base_url: "https://api.anthropic.com",
        env_keys: &[key("ANTHROPIC_API_KEY"), bearer("ANTHROPIC_AUTH_TOKEN")],
        default_model: Some("claude-opus-5-5"),
        pricing: Pricing::PlanWithAccount,
        models: Models::Listed(embedded_text!("data/models/anthropic.json")),
        server: Server { hosts: &["api.anthropic.com"], images: Some(image_limits::ANTHROPIC), ..UNKNOWN },
    },
    Vendor {
        id: "openai",
        name: "OpenAI",
        base_url: "https://api.openai.com/v1",
        env_keys: &[key("OPENAI_API_KEY")],
        default_model: Some("gpt-6.2-sol"),
        pricing: Pricing::PlanWithAccount,
        models: Models::Listed(embedded_text!("data/models/openai.json")),
        server: Server {
            kind: ServerKind::OpenAi,
            hosts: &["api.openai.com"],
            images: Some(image_limits::OPENAI),
            ..UNKNOWN
        },
    },
    Vendor {
        id: "google",
        name: "Google Gemini",
        base_url: "https://generativelanguage.googleapis.com/v1beta",
        env_keys: &[key("GEMINI_API_KEY")],
        default_model: Some("gemini-4-argon"),
        pricing: Pricing::PerToken,
        models: Models::Listed(embedded_text!("data/models/google.json")),
        server: Server {
            hosts: &["generativelanguage.googleapis.com"],
            images: Some(image_limits::GOOGLE),
            ..UNKNOWN
        },
    },
    Vendor {
        id: "openrouter",
        name: "OpenRouter",
        base_url: "https://openrouter.ai/api/v1",
        env_keys: &[key("OPENROUTER_API_KEY")],
        default_model: Some("moonshotai/kimi-k2.7-code"),
        pricing: Pricing::PerToken,
        models: Models::Listed(embedded_text!("data/models/openrouter.json")),
        server: Server { kind: ServerKind::OpenRouter, hosts: &["openrouter.ai"], ..UNKNOWN },
    },
    Vendor {
        id: "groq",
        name: "Groq",
        base_url: "https://api.groq.com/openai/v1",
        env_keys: &[key("GROQ_API_KEY")],
        default_model: Some("openai/gpt-oss-120b"),
        pricing: Pricing::PerToken,
        models: Models::Listed(embedded_text!("data/models/groq.json")),
        server: Server {
            kind: ServerKind::Groq,
            hosts: &["api.groq.com"],
            images: Some(image_limits::GROQ),
            ..UNKNOWN
        },
    },
    Vendor {
        id: "cerebras",
        name: "Cerebras",
        base_url: "https://api.cerebras.ai/v1",
        env_keys: &[key("CEREBRAS_API_KEY")],
        default_model: Some("gpt-oss-120b"),
        pricing: Pricing::PerToken,
        models: Models::Listed(embedded_text!("data/models/cerebras.json")),
        server: Server {
            kind: ServerKind::Cerebras,
            hosts: &["api.cerebras.ai"],
            empty_error_is_overflow: true,
            ..UNKNOWN
        },
    },
    Vendor {
        id: "xai",
        name: "xAI",
        base_url: "https://api.x.ai/v1",
        env_keys: &[key("XAI_API_KEY")],
        default_model: Some("grok-4.7"),
        pricing: Pricing::PerToken,
        models: Models::Listed(embedded_text!("data/models/xai.json")),
        server: Server {
            kind: ServerKind::Xai,
            hosts: &["api.x.ai"],
            images: Some(image_limits::XAI),
            ..UNKNOWN
        },
    },
    Vendor {
        id: "deepseek",
        name: "DeepSeek",
        base_url: "https://api.deepseek.com",
        env_keys: &[key("DEEPSEEK_API_KEY")],
        default_model: Some("deepseek-v4-pro"),
        pricing: Pricing::PerToken,
        models: Models::Listed(embedded_text!("data/models/deepseek.json")),
        server: Server { kind: ServerKind::DeepSeek, hosts: &["api.deepseek.com"], ..UNKNOWN },
    },
    Vendor {
        id: "mistral",
        name: "Mistral",
        base_url: "https://api.mistral.ai",
        env_keys: &[key("MISTRAL_API_KEY")],
        default_model: Some("devstral-medium-latest"),
        pricing: Pricing::PerToken,
        models: Models::Listed(embedded_text!("data/models/mistral.json")),
        server: Server { kind: ServerKind::Mistral, hosts: &["api.mistral.ai"], ..UNKNOWN },
    },
    Vendor {
        id: "moonshotai",
        name: "Moonshot AI",
        base_url: "https://api.moonshot.ai/v1",
        env_keys: &[key("MOONSHOT_API_KEY")],
        default_model: Some("kimi-k2.7-code"),
        pricing: Pricing::PerToken,
        models: Models::Listed(embedded_text!("data/models/moonshotai.json")),
        server: Server { hosts: &["api.moonshot."], aliases: &["moonshot"], ..MOONSHOT },
    },
    Vendor {
        id: "moonshotai-cn",
        name: "Moonshot AI (China)",
        base_url: "https://api.moonshot.cn/v1",
        env_keys: &[key("MOONSHOT_API_KEY")],
        default_model: Some("kimi-k2.7-code"),
        pricing: Pricing::PerToken,
        models: Models::Of("moonshotai"),
        server: MOONSHOT,
    },
    Vendor {
        id: "kimi-coding",
        name: "Kimi For Coding",
        base_url: "https://api.kimi.com/coding/v1",
        env_keys: &[key("KIMI_API_KEY")],
        default_model: Some("kimi-for-coding"),
        pricing: Pricing::Plan,
        models: Models::Listed(embedded_text!("data/models/kimi-coding.json")),
        server: Server { hosts: &["api.kimi.com"], ..MOONSHOT },
    },
    Vendor {
        id: "zai",
        name: "Z.AI",
        base_url: "https://api.z.ai/api/coding/paas/v4",
        env_keys: &[key("ZAI_API_KEY")],
        default_model: Some("glm-5.3"),
        pricing: Pricing::Plan,
        models: Models::Listed(embedded_text!("data/models/zai.json")),
        server: Server { kind: ServerKind::Zai, hosts: &["api.z.ai"], ..UNKNOWN },
    },
    Vendor {
        id: "zai-coding-cn",
        name: "Z.AI (China)",
        base_url: "https://open.bigmodel.cn/api/coding/paas/v4",
        env_keys: &[key("ZAI_CODING_CN_API_KEY")],
        default_model: Some("glm-5.3"),
        pricing: Pricing::Plan,
        models: Models::Of("zai"),
        server: Server { kind: ServerKind::Zai, hosts: &["open.bigmodel.cn"], ..UNKNOWN },
    },
    Vendor {
        id: "minimax",
        name: "MiniMax",
        base_url: "https://api.minimax.io/anthropic",
        env_keys: &[key("MINIMAX_API_KEY")],
        default_model: Some("MiniMax-M3"),
        pricing: Pricing::PerToken,
        models: Models::Listed(embedded_text!("data/models/minimax.json")),
        server: UNKNOWN,
    },
    Vendor {
        id: "minimax-cn",
        name: "MiniMax (China)",
        base_url: "https://api.minimaxi.com/anthropic",
        env_keys: &[key("MINIMAX_CN_API_KEY")],
        default_model: Some("MiniMax-M3"),
        pricing: Pricing::PerToken,
        models: Models::Of("minimax"),
        server: UNKNOWN,
    },
    Vendor {
        id: "azure",
        name: "Azure OpenAI",
        base_url: "",
        env_keys: &[key("AZURE_OPENAI_API_KEY")],
        default_model: Some("gpt-6.2-sol"),
        pricing: Pricing::PerToken,
        models: Models::Listed(embedded_text!("data/models/azure.json")),
        server: Server {
            kind: ServerKind::Azure,
            hosts: &[".openai.azure.com"],
            aliases: &["azure-openai-responses"],
            images: Some(image_limits::OPENAI),
            ..UNKNOWN
        },
    },
    Vendor {
        id: "google-vertex",
        name: "Google Vertex AI",
        base_url: VERTEX_TEMPLATE,
        env_keys: &[key("GOOGLE_CLOUD_API_KEY")],
        default_model: Some("gemini-4-argon"),
        pricing: Pricing::PerToken,
        models: Models::Listed(embedded_text!("data/models/google-vertex.json")),
        server: UNKNOWN,
    },
    Vendor {
        id: "amazon-bedrock",
        name: "Amazon Bedrock",
        base_url: "https://bedrock-runtime.us-east-1.amazonaws.com",
        env_keys: &[bearer("AWS_BEARER_TOKEN_BEDROCK")],
        default_model: Some("us.anthropic.claude-opus-5-5"),
        pricing: Pricing::PerToken,
        models: Models::Listed(embedded_text!("data/models/amazon-bedrock.json")),
        server: Server { hosts: &["bedrock-runtime."], images: Some(image_limits::BEDROCK), ..UNKNOWN },
    },
    Vendor {
        id: "github-copilot",
        name: "GitHub Copilot",
        base_url: "https://api.individual.githubcopilot.com",
        env_keys: &[key("COPILOT_GITHUB_TOKEN")],
        default_model: Some("gpt-6.1-sol"),
        pricing: Pricing::Plan,
        models: Models::Listed(embedded_text!("data/models/github-copilot.json")),
        server: Server {
            kind: ServerKind::Copilot,
            hosts: &["githubcopilot.com"],
            reads_bytes_only: true,
            ..UNKNOWN
        },
    },
    Vendor {
        id: "openai-codex",
        name: "OpenAI Codex (ChatGPT account)",
        base_url: "https://chatgpt.com/backend-api",
        env_keys: &[],
        default_model: Some("gpt-6.2-sol"),
        pricing: Pricing::Plan,
        models: Models::Listed(embedded_text!("data/models/openai-codex.json")),
        server: UNKNOWN,
    },
    listing("nvidia", "NVIDIA", "https://integrate.api.nvidia.com/v1", &[key("NVIDIA_API_KEY")]),
    listing(
        "vercel-ai-gateway",
        "Vercel AI Gateway",
        "https://ai-gateway.vercel.sh/v1",
        &[key("AI_GATEWAY_API_KEY")],
    )
    .on(Server { kind: ServerKind::VercelGateway, hosts: &["ai-gateway.vercel.sh"], ..UNKNOWN }),
    listing("huggingface", "Hugging Face", "https://router.huggingface.co/v1", &[key("HF_TOKEN")]),
    listing("fireworks", "Fireworks", "https://api.fireworks.ai/inference/v1", &[key("FIREWORKS_API_KEY")]),
    listing("together", "Together AI", "https://api.together.ai/v1", &[key("TOGETHER_API_KEY")]).on(Server {
        kind: ServerKind::Together,
        hosts: &["api.together.xyz", "api.together.ai"],
        ..UNKNOWN
    }),
    listing("baseten", "Baseten", "https://inference.baseten.co/v1", &[key("BASETEN_API_KEY")]),
    listing("opencode", "OpenCode Zen", "https://opencode.ai/zen/v1", &[key("OPENCODE_API_KEY")]),
    listing(
        "cloudflare-workers-ai",
        "Cloudflare Workers AI",
        "https://api.cloudflare.com/client/v4/accounts/{CLOUDFLARE_ACCOUNT_ID}/ai/v1",
        &[key("CLOUDFLARE_API_KEY")],
    ),
    listing(
        "cloudflare-ai-gateway",
        "Cloudflare AI Gateway",
        "https://gateway.ai.cloudflare.com/v1/{CLOUDFLARE_ACCOUNT_ID}/{CLOUDFLARE_GATEWAY_ID}/compat",
        &[key("CLOUDFLARE_API_KEY")],
    ),
    listing(
        "qwen-token-plan",
        "Qwen Token Plan Team",
        QWEN_PLAN,
        &[key("QWEN_TOKEN_PLAN_TEAM_API_KEY"), key("QWEN_TOKEN_PLAN_API_KEY")],
    )
    .on(QWEN)
    .plan(),
    listing(
        "qwen-token-plan-cn",
        "Qwen Token Plan Team CN",
        QWEN_PLAN_CN,
        &[key("QWEN_TOKEN_PLAN_TEAM_CN_API_KEY"), key("QWEN_TOKEN_PLAN_CN_API_KEY")],
    )
    .on(QWEN)
    .plan(),
    listing(
        "qwen-token-plan-individual",
        "Qwen Token Plan Individual",
        QWEN_PLAN,
        &[key("QWEN_TOKEN_PLAN_INDIVIDUAL_API_KEY"), key("QWEN_TOKEN_PLAN_API_KEY")],
    )
    .on(QWEN)
    .plan(),
    listing(
        "qwen-token-plan-individual-cn",
        "Qwen Token Plan Individual CN",
        QWEN_PLAN_CN,
        &[key("QWEN_TOKEN_PLAN_INDIVIDUAL_CN_API_KEY"), key("QWEN_TOKEN_PLAN_CN_API_KEY")],
    )
    .on(QWEN)
    .plan(),
    listing("xiaomi", "Xiaomi MiMo", "https://api.xiaomimimo.com/v1", &[key("XIAOMI_API_KEY")])
        .thinking_in_history(),
    listing(
        "xiaomi-token-plan-cn",
        "Xiaomi MiMo Token Plan (China)",
        "https://token-plan-cn.xiaomimimo.com/v1",
        &[key("XIAOMI_TOKEN_PLAN_CN_API_KEY")],
    )
    .thinking_in_history()
    .plan(),
    listing(
        "xiaomi-token-plan-ams",
        "Xiaomi MiMo Token Plan (Europe)",
        "https://token-plan-ams.xiaomimimo.com/v1",
        &[key("XIAOMI_TOKEN_PLAN_AMS_API_KEY")],
    )
    .thinking_in_history()
    .plan(),
    listing(
        "xiaomi-token-plan-sgp",
        "Xiaomi MiMo Token Plan (Singapore)",
        "https://token-plan-sgp.xiaomimimo.com/v1",
        &[key("XIAOMI_TOKEN_PLAN_SGP_API_KEY")],
    )
    .thinking_in_history()
    .plan(),
];

/// Whether a request to `provider` belongs to a flat-rate plan. Answers say so themselves
/// ([`Usage::is_on_plan`]); files of other programs do not, so providers
/// that sell only plans are recognised by id, and unknown ones by names such as
/// `acme-token-plan`.
pub fn is_flat_rate(provider: &str, usage: &Usage) -> bool {
    let by_id = || match vendor(provider) {
        Some(vendor) => vendor.pricing == Pricing::Plan,
        None => provider.contains("-token-plan"),
    };
    usage.is_on_plan() || by_id()
}

/// Whether requests of `model` belong to a flat-rate plan, with an account the user signed
/// in to if `has_account`.
pub(in crate::ai) fn is_on_plan(model: &Model, has_account: bool) -> bool {
    match vendor(&model.provider).map(|vendor| vendor.pricing) {
        Some(Pricing::Plan) => true,
        Some(Pricing::PlanWithAccount) => has_account,
        Some(Pricing::PerToken) | None => false,
    }
}

/// The vendor with this id.
pub fn vendor(id: &str) -> Option<&'static Vendor> {
    VENDORS.iter().find(|vendor| vendor.id == id)
}

#[cfg(test)]
mod tests {
    use super::super::catalog::Catalog;
    use super::*;

    #[test]
    fn plans_are_recognised_by_answer_account_and_provider() {
        let model = |provider: &str| Model { provider: provider.to_owned(), ..Model::default() };
        let check = |provider: &str, with_key: bool, with_account: bool, in_files: bool| {
            assert_eq!(is_on_plan(&model(provider), false), with_key, "{provider}");
            assert_eq!(is_on_plan(&model(provider), true), with_account, "{provider}");
            assert_eq!(is_flat_rate(provider, &Usage::default()), in_files, "{provider}");
        };
        check("anthropic", false, true, false);
        check("openai", false, true, false);
        check("openai-codex", true, true, true);
        check("github-copilot", true, true, true);
        check("zai", true, true, true);
        check("xiaomi-token-plan-cn", true, true, true);
        check("openrouter", false, false, false);
        check("acme-token-plan", false, false, true);
        let mut usage = Usage::default();
        usage.set_on_plan();
        assert!(is_flat_rate("openai", &usage));
        let read: Usage = serde_json::from_str(&serde_json::to_string(&usage).unwrap()).unwrap();
        assert!(read.is_on_plan());
    }

    #[test]
    fn a_server_is_recognised_by_its_address_before_the_provider_id() {
        let check = |provider: &str, base_url: &str, kind: ServerKind, bytes_only: bool| {
            let (provider, base_url) = (provider.to_owned(), base_url.to_owned());
            let model = Model { provider, base_url, ..Model::default() };
            let server = Server::of(&model, |server| server.kind != ServerKind::Unknown);
            let found = server.map_or(ServerKind::Unknown, |server| server.kind);
            let expected = (kind, bytes_only);
            assert_eq!(
                (found, Server::is_any(&model, |server| server.reads_bytes_only)),
                expected,
                "{model:?}"
            );
        };
        check("openai", "https://api.deepseek.com", ServerKind::DeepSeek, false);
        check("mine", "https://api.moonshot.cn/v1", ServerKind::Moonshot, true);
        check("mine", "https://x.cognitiveservices.azure.com", ServerKind::Azure, false);
        check("azure", "https://proxy", ServerKind::Azure, false);
        check("azure-openai", "", ServerKind::Azure, false);
        check("github-copilot", "", ServerKind::Copilot, true);
        check("ollama", "http://localhost:11434", ServerKind::Unknown, true);
        check("", "", ServerKind::Unknown, false);
        // The rest of the facts of a row.
        let cerebras = Model { base_url: "https://api.cerebras.ai/v1".to_owned(), ..Model::default() };
        assert!(Server::is_any(&cerebras, |server| server.empty_error_is_overflow));
        assert!(is_of(&Model { provider: "anthropic".to_owned(), ..Model::default() }, "anthropic"));
        assert!(!is_of(&cerebras, "anthropic"));
    }

    #[test]
    fn every_vendor_has_its_default_model() {
        let catalog = Catalog::builtin();
        for vendor in VENDORS {
            let is_queried = matches!(vendor.models, Models::Queried { .. });
            assert_eq!(vendor.default_model.is_none(), is_queried, "{}", vendor.id);
            let Some(default) = vendor.default_model else { continue };
            assert!(catalog.get(vendor.id, default).is_some(), "{}", vendor.id);
        }
    }
}

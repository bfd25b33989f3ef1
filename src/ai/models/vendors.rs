//! TABLE: vendors, their addresses, and the environment variables with their keys.
//!
//! A vendor with a supported API is one row here and its models in
//! `data/models`, or only a row here if the service lists its own models. Addresses
//! and variables come from the vendors' documentation, as of autumn 2026.

use super::vertex::VERTEX_TEMPLATE;

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
    /// The vendor whose models it offers, if it has no list of its own.
    pub models_of: Option<&'static str>,
}

/// An environment variable with a key, and how the key is sent.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct EnvKey {
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
    Vendor { id, name, base_url, env_keys, default_model: None, models_of: None }
}

/// In the order of preference if several keys are set.
pub const VENDORS: &[Vendor] = &[
    Vendor {
        id: "anthropic",
        name: "Anthropic",
        base_url: "https://api.anthropic.com",
        env_keys: &[key("ANTHROPIC_API_KEY"), bearer("ANTHROPIC_AUTH_TOKEN")],
        default_model: Some("claude-opus-5-5"),
        models_of: None,
    },
    Vendor {
        id: "openai",
        name: "OpenAI",
        base_url: "https://api.openai.com/v1",
        env_keys: &[key("OPENAI_API_KEY")],
        default_model: Some("gpt-6.1-sol"),
        models_of: None,
    },
    Vendor {
        id: "google",
        name: "Google Gemini",
        base_url: "https://generativelanguage.googleapis.com/v1beta",
        env_keys: &[key("GEMINI_API_KEY")],
        default_model: Some("gemini-4-argon"),
        models_of: None,
    },
    Vendor {
        id: "openrouter",
        name: "OpenRouter",
        base_url: "https://openrouter.ai/api/v1",
        env_keys: &[key("OPENROUTER_API_KEY")],
        default_model: Some("moonshotai/kimi-k2.7-code"),
        models_of: None,
    },
    Vendor {
        id: "groq",
        name: "Groq",
        base_url: "https://api.groq.com/openai/v1",
        env_keys: &[key("GROQ_API_KEY")],
        default_model: Some("openai/gpt-oss-120b"),
        models_of: None,
    },
    Vendor {
        id: "cerebras",
        name: "Cerebras",
        base_url: "https://api.cerebras.ai/v1",
        env_keys: &[key("CEREBRAS_API_KEY")],
        default_model: Some("gpt-oss-120b"),
        models_of: None,
    },
    Vendor {
        id: "xai",
        name: "xAI",
        base_url: "https://api.x.ai/v1",
        env_keys: &[key("XAI_API_KEY")],
        default_model: Some("grok-4.7"),
        models_of: None,
    },
    Vendor {
        id: "deepseek",
        name: "DeepSeek",
        base_url: "https://api.deepseek.com",
        env_keys: &[key("DEEPSEEK_API_KEY")],
        default_model: Some("deepseek-v4-pro"),
        models_of: None,
    },
    Vendor {
        id: "mistral",
        name: "Mistral",
        base_url: "https://api.mistral.ai",
        env_keys: &[key("MISTRAL_API_KEY")],
        default_model: Some("devstral-medium-latest"),
        models_of: None,
    },
    Vendor {
        id: "moonshotai",
        name: "Moonshot AI",
        base_url: "https://api.moonshot.ai/v1",
        env_keys: &[key("MOONSHOT_API_KEY")],
        default_model: Some("kimi-k2.7-code"),
        models_of: None,
    },
    Vendor {
        id: "moonshotai-cn",
        name: "Moonshot AI (China)",
        base_url: "https://api.moonshot.cn/v1",
        env_keys: &[key("MOONSHOT_API_KEY")],
        default_model: Some("kimi-k2.7-code"),
        models_of: Some("moonshotai"),
    },
    Vendor {
        id: "kimi-coding",
        name: "Kimi For Coding",
        base_url: "https://api.kimi.com/coding/v1",
        env_keys: &[key("KIMI_API_KEY")],
        default_model: Some("kimi-for-coding"),
        models_of: None,
    },
    Vendor {
        id: "zai",
        name: "Z.AI",
        base_url: "https://api.z.ai/api/coding/paas/v4",
        env_keys: &[key("ZAI_API_KEY")],
        default_model: Some("glm-5.3"),
        models_of: None,
    },
    Vendor {
        id: "zai-coding-cn",
        name: "Z.AI (China)",
        base_url: "https://open.bigmodel.cn/api/coding/paas/v4",
        env_keys: &[key("ZAI_CODING_CN_API_KEY")],
        default_model: Some("glm-5.3"),
        models_of: Some("zai"),
    },
    Vendor {
        id: "minimax",
        name: "MiniMax",
        base_url: "https://api.minimax.io/anthropic",
        env_keys: &[key("MINIMAX_API_KEY")],
        default_model: Some("MiniMax-M3"),
        models_of: None,
    },
    Vendor {
        id: "minimax-cn",
        name: "MiniMax (China)",
        base_url: "https://api.minimaxi.com/anthropic",
        env_keys: &[key("MINIMAX_CN_API_KEY")],
        default_model: Some("MiniMax-M3"),
        models_of: Some("minimax"),
    },
    Vendor {
        id: "azure",
        name: "Azure OpenAI",
        base_url: "",
        env_keys: &[key("AZURE_OPENAI_API_KEY")],
        default_model: Some("gpt-6.1-sol"),
        models_of: None,
    },
    Vendor {
        id: "google-vertex",
        name: "Google Vertex AI",
        base_url: VERTEX_TEMPLATE,
        env_keys: &[key("GOOGLE_CLOUD_API_KEY")],
        default_model: Some("gemini-4-argon"),
        models_of: None,
    },
    Vendor {
        id: "amazon-bedrock",
        name: "Amazon Bedrock",
        base_url: "https://bedrock-runtime.us-east-1.amazonaws.com",
        env_keys: &[bearer("AWS_BEARER_TOKEN_BEDROCK")],
        default_model: Some("us.anthropic.claude-opus-5-5"),
        models_of: None,
    },
    Vendor {
        id: "github-copilot",
        name: "GitHub Copilot",
        base_url: "https://api.individual.githubcopilot.com",
        env_keys: &[key("COPILOT_GITHUB_TOKEN")],
        default_model: Some("gpt-6.1-sol"),
        models_of: None,
    },
    Vendor {
        id: "openai-codex",
        name: "OpenAI Codex (ChatGPT account)",
        base_url: "https://chatgpt.com/backend-api",
        env_keys: &[],
        default_model: Some("gpt-6.1-sol"),
        models_of: None,
    },
    listing("nvidia", "NVIDIA", "https://integrate.api.nvidia.com/v1", &[key("NVIDIA_API_KEY")]),
    listing(
        "vercel-ai-gateway",
        "Vercel AI Gateway",
        "https://ai-gateway.vercel.sh/v1",
        &[key("AI_GATEWAY_API_KEY")],
    ),
    listing("huggingface", "Hugging Face", "https://router.huggingface.co/v1", &[key("HF_TOKEN")]),
    listing("fireworks", "Fireworks", "https://api.fireworks.ai/inference/v1", &[key("FIREWORKS_API_KEY")]),
    listing("together", "Together AI", "https://api.together.ai/v1", &[key("TOGETHER_API_KEY")]),
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
        "Qwen Token Plan",
        "https://token-plan.ap-southeast-1.maas.aliyuncs.com/compatible-mode/v1",
        &[key("QWEN_TOKEN_PLAN_API_KEY")],
    ),
    listing(
        "qwen-token-plan-cn",
        "Qwen Token Plan (China)",
        "https://token-plan.cn-beijing.maas.aliyuncs.com/compatible-mode/v1",
        &[key("QWEN_TOKEN_PLAN_CN_API_KEY")],
    ),
    listing("xiaomi", "Xiaomi MiMo", "https://api.xiaomimimo.com/v1", &[key("XIAOMI_API_KEY")]),
    listing(
        "xiaomi-token-plan-cn",
        "Xiaomi MiMo Token Plan (China)",
        "https://token-plan-cn.xiaomimimo.com/v1",
        &[key("XIAOMI_TOKEN_PLAN_CN_API_KEY")],
    ),
    listing(
        "xiaomi-token-plan-ams",
        "Xiaomi MiMo Token Plan (Europe)",
        "https://token-plan-ams.xiaomimimo.com/v1",
        &[key("XIAOMI_TOKEN_PLAN_AMS_API_KEY")],
    ),
    listing(
        "xiaomi-token-plan-sgp",
        "Xiaomi MiMo Token Plan (Singapore)",
        "https://token-plan-sgp.xiaomimimo.com/v1",
        &[key("XIAOMI_TOKEN_PLAN_SGP_API_KEY")],
    ),
];

/// The vendor with this id.
pub fn vendor(id: &str) -> Option<&'static Vendor> {
    VENDORS.iter().find(|vendor| vendor.id == id)
}

#[cfg(test)]
mod tests {
    use super::super::catalog::Catalog;
    use super::*;

    #[test]
    fn every_vendor_has_its_default_model() {
        let catalog = Catalog::builtin();
        for vendor in VENDORS {
            let Some(default) = vendor.default_model else { continue };
            assert!(catalog.get(vendor.id, default).is_some(), "{}", vendor.id);
        }
    }
}

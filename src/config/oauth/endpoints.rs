//! TABLE: where sign-ins go. Tests put a server of their own here.

/// Addresses of the services, without a slash at the end. As of autumn 2026.
#[derive(Debug, Clone)]
pub struct Endpoints {
    /// Sign-ins of OpenAI, both kinds.
    pub openai: String,
    /// API a ChatGPT sign-in gives access to.
    pub openai_resource: String,
    /// API a Codex sign-in gives access to.
    pub codex: String,
    /// GitHub itself, and its API.
    pub github: String,
    pub github_api: String,
    /// Where Copilot answers accounts that name no address of their own.
    pub copilot: String,
    /// Where browsers come back to on this machine. The services know this port;
    /// 0 takes a free one.
    pub callback_port: u16,
}

impl Default for Endpoints {
    fn default() -> Self {
        Self {
            openai: "https://auth.openai.com".to_owned(),
            openai_resource: "https://api.openai.com/v1".to_owned(),
            codex: "https://chatgpt.com/backend-api".to_owned(),
            github: "https://github.com".to_owned(),
            github_api: "https://api.github.com".to_owned(),
            copilot: "https://api.individual.githubcopilot.com".to_owned(),
            callback_port: 1455,
        }
    }
}

//! TABLE: the endpoints of sign-ins. Tests use a server of their own.

/// Addresses of the services, without a slash at the end. As of autumn 2026.
#[derive(Debug, Clone)]
pub struct Endpoints {
    /// Sign-ins of OpenAI, both kinds.
    pub openai: String,
    /// API that a ChatGPT sign-in gives access to.
    pub openai_resource: String,
    /// API that a Codex sign-in gives access to.
    pub codex: String,
    /// GitHub itself, and its API.
    pub github: String,
    /// The API of GitHub.
    pub github_api: String,
    /// Copilot's endpoint for accounts that specify none.
    pub copilot: String,
    /// The port on this machine that browsers return to. The services know this port;
    /// 0 selects a free one.
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

//! TABLE: how keys, tokens and passwords look.

/// A kind of secret.
pub(super) struct SecretKind {
    /// For messages, without an article.
    pub(super) name: &'static str,
    /// If it has a group, that is the secret and the rest is what it is known by. Classes are
    /// those of ASCII, except in patterns with `[^…]` or other characters, which are of text.
    pub(super) pattern: &'static str,
    /// Some kinds are known by their surroundings; their values must look random, so that
    /// prose and placeholders are not reported.
    pub(super) must_look_random: bool,
}

const fn row(name: &'static str, pattern: &'static str) -> SecretKind {
    SecretKind { name, pattern, must_look_random: false }
}

const fn random(name: &'static str, pattern: &'static str) -> SecretKind {
    SecretKind { name, pattern, must_look_random: true }
}

/// Of two kinds that match at the same place, the first counts.
pub(super) const KINDS: &[SecretKind] = &[
    // The lines may be indented, numbered, quoted, or escaped as in JSON. A key that was
    // truncated has no last line.
    row(
        "private key",
        r"-----BEGIN (?:[A-Z0-9]+ )*PRIVATE KEY(?: BLOCK)?-----(?:(?:\\r|\\n|[\r\n\t >|+:→0-9])*(?:[A-Za-z][A-Za-z-]*: [^\r\n\\]*|[A-Za-z0-9+/=]+))*?(?:\\r|\\n|[\r\n\t >|+:→0-9])*[A-Za-z0-9+/=]{40,}(?:(?:\\r|\\n|[\r\n])(?:\\r|\\n|[\r\n\t >|+:→0-9])*[A-Za-z0-9+/=]+)*(?:(?:\\r|\\n|[\r\n\t >|+:→0-9])*-----END (?:[A-Z0-9]+ )*PRIVATE KEY(?: BLOCK)?-----)?",
    ),
    row("age secret key", r"\bAGE-SECRET-KEY-1[0-9A-Z]{40,}"),
    row("Anthropic key", r"\bsk-ant-[A-Za-z0-9_-]{20,}"),
    row("OpenRouter key", r"\bsk-or-(?:v1-)?[A-Za-z0-9]{20,}"),
    row("OpenAI key", r"\bsk-(?:proj|svcacct|admin|None)-[A-Za-z0-9_-]{20,}"),
    row("OpenAI key", r"\bsk-[A-Za-z0-9]{20}T3BlbkFJ[A-Za-z0-9]{20}"),
    random("API key", r"\bsk-[A-Za-z0-9]{32,}\b"),
    row("Google API key", r"\bAIza[0-9A-Za-z_-]{35}"),
    row("Google access token", r"\bya29\.[0-9A-Za-z_-]{20,}"),
    row("Google client secret", r"\bGOCSPX-[0-9A-Za-z_-]{20,}"),
    row("GitHub token", r"\bgh[pousr]_[A-Za-z0-9]{36,}"),
    row("GitHub token", r"\bgithub_pat_[A-Za-z0-9_]{22,}"),
    row("GitLab token", r"\bgl(?:pat|dt|rt|ptt|oas|cbt)-[A-Za-z0-9_-]{20,}"),
    row("AWS access key id", r"\b(?:AKIA|ASIA)[A-Z2-7]{16}\b"),
    random(
        "AWS secret key",
        r#"(?i)\baws_?secret_?(?:access_?)?key["']?\s*[:=]\s*["']?([A-Za-z0-9/+=]{40})"#,
    ),
    random("Azure storage key", r"\bAccountKey=([A-Za-z0-9+/]{40,}={0,2})"),
    row("xAI key", r"\bxai-[A-Za-z0-9]{40,}"),
    row("Groq key", r"\bgsk_[A-Za-z0-9]{40,}"),
    row("Perplexity key", r"\bpplx-[A-Za-z0-9]{40,}"),
    row("Cerebras key", r"\bcsk-[a-z0-9]{40,}"),
    row("Fireworks key", r"\bfw_[A-Za-z0-9]{20,}\b"),
    row("NVIDIA key", r"\bnvapi-[A-Za-z0-9_-]{40,}"),
    row("Hugging Face token", r"\bhf_[A-Za-z0-9]{30,}"),
    row("Replicate token", r"\br8_[A-Za-z0-9]{37,}"),
    row("Vercel key", r"\bvck_[A-Za-z0-9]{40,}"),
    row("Slack token", r"\bxox[abeoprs]-[A-Za-z0-9-]{10,}"),
    row("Slack token", r"\bxapp-[0-9]-[A-Za-z0-9-]{20,}"),
    row(
        "Slack webhook",
        r"https://hooks\.slack\.com/services/T[A-Za-z0-9_]+/B[A-Za-z0-9_]+/[A-Za-z0-9_]{16,}",
    ),
    row("Stripe key", r"\b[rs]k_(?:live|test)_[A-Za-z0-9]{16,}"),
    row("SendGrid key", r"\bSG\.[A-Za-z0-9_-]{16,}\.[A-Za-z0-9_-]{32,}"),
    row("npm token", r"\bnpm_[A-Za-z0-9]{36}"),
    row("PyPI token", r"\bpypi-AgE[A-Za-z0-9_-]{50,}"),
    row("crates.io token", r"\bcio[A-Za-z0-9]{32}\b"),
    row("DigitalOcean token", r"\bdo[opr]_v1_[a-f0-9]{64}"),
    row("Telegram token", r"\b[0-9]{8,10}:AA[A-Za-z0-9_-]{33}"),
    row("signed token (JWT)", r"\beyJ[A-Za-z0-9_-]{10,}\.eyJ[A-Za-z0-9_-]{10,}\.[A-Za-z0-9_-]{10,}"),
    random(
        "authorization header",
        r#"(?i)\bauthorization["']?\s*[:=]\s*["']?(?:bearer|basic|token)\s+([A-Za-z0-9._~+/=-]{12,})"#,
    ),
    random("bearer token", r"(?i)\bbearer\s+([A-Za-z0-9._~+/-]{16,}=*)"),
    random(
        "API key in a header",
        r#"(?i)\b(?:x-api-key|x-goog-api-key|api-key)["']?\s*[:=]\s*["']?([A-Za-z0-9._~+/=-]{16,})"#,
    ),
    row(
        "password in a URL",
        r"(?-u:\b)[a-z][a-z0-9+.-]{1,20}://[^\s/:@\x22'<>]+:([^\s/:@\x22'<>${}]{3,})@[A-Za-z0-9\[]",
    ),
    random(
        "value of a secret variable",
        r#"\b[A-Z0-9_]*(?:API_?KEY|SECRET(?:_KEY)?|TOKEN|PASSWORD|PASSWD|ACCESS_KEY)\b["']?\s*[:=]\s*["']?([A-Za-z0-9_./+~=-]{16,})"#,
    ),
];

/// Each secret of [`KINDS`] has one of these in it, in lower case. Most short texts have none, and need no
/// pattern.
pub(super) const SIGNS: &[&str] = &[
    "-----begin ",
    "age-secret-key-1",
    "sk-",
    "aiza",
    "ya29.",
    "gocspx-",
    "ghp_",
    "gho_",
    "ghu_",
    "ghs_",
    "ghr_",
    "github_pat_",
    "glpat-",
    "gldt-",
    "glrt-",
    "glptt-",
    "gloas-",
    "glcbt-",
    "akia",
    "asia",
    "secret",
    "accountkey=",
    "xai-",
    "gsk_",
    "pplx-",
    "fw_",
    "nvapi-",
    "hf_",
    "r8_",
    "vck_",
    "xox",
    "xapp-",
    "hooks.slack.com",
    "k_live_",
    "k_test_",
    "sg.",
    "npm_",
    "pypi-age",
    "cio",
    "_v1_",
    ":aa",
    "eyj",
    "authorization",
    "bearer",
    "api-key",
    "apikey",
    "api_key",
    "token",
    "password",
    "passwd",
    "access_key",
    "://",
];

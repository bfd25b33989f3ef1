//! Which key opens which provider.
//!
//! In order: the key from the command line, the provider's `apiKey` in
//! `models.json`, the provider's environment variables.

use std::process::Command;

use crate::ai::{Api, Catalog, Credential, DEMO_PROVIDER, Model, ProviderInfo, vendor};

use super::env::Env;

/// Finds keys; holds the one from the command line.
#[derive(Clone)]
pub struct Credentials {
    env: Env,
    /// Provider and key of `--api-key`.
    command_line: Option<(String, String)>,
}

/// Why a model cannot be asked; says what to do.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum CredentialError {
    #[error("no key for {provider}; set {variables}, or choose another model with /model or --model")]
    Missing { provider: String, variables: String },
    #[error("no key for {provider}: {problem}")]
    Unresolved { provider: String, problem: String },
}

impl Credentials {
    pub fn new(env: Env) -> Self {
        Self { env, command_line: None }
    }

    /// Uses `key` for `provider`, before anything else.
    pub fn set_command_line_key(&mut self, provider: &str, key: &str) {
        self.command_line = Some((provider.to_owned(), key.trim().to_owned()));
    }

    /// Whether a provider can be used, as far as can be told without running
    /// the user's key command.
    pub fn is_available(&self, provider: &ProviderInfo) -> bool {
        if provider.id == DEMO_PROVIDER || self.command_line_key(&provider.id).is_some() {
            return true;
        }
        match &provider.api_key {
            Some(template) if template.starts_with('!') => true,
            Some(template) => expand(template, &self.env).is_ok_and(|key| !key.is_empty()),
            // A custom provider without a key is a server that asks for none.
            None => provider.custom || self.environment_key(&provider.id).is_some(),
        }
    }

    /// The key for `model`. Blocks when the key is a command's output.
    ///
    /// # Errors
    /// When there is no key, or the user's template or command yields none.
    pub fn resolve(&self, model: &Model, catalog: &Catalog) -> Result<Credential, CredentialError> {
        if model.api == Api::DEMO {
            return Ok(Credential::None);
        }
        let provider = catalog.provider(&model.provider);
        let bearer = provider.is_some_and(|provider| provider.auth_header);
        let wrap = |key: String| if bearer { Credential::Bearer(key) } else { Credential::ApiKey(key) };
        if let Some(key) = self.command_line_key(&model.provider) {
            return Ok(wrap(key.to_owned()));
        }
        if let Some(template) = provider.and_then(|provider| provider.api_key.as_deref()) {
            return resolve_template(template, &self.env).map(wrap).map_err(|problem| {
                CredentialError::Unresolved { provider: model.provider.clone(), problem }
            });
        }
        if let Some(credential) = self.environment_key(&model.provider) {
            return Ok(credential);
        }
        if provider.is_some_and(|provider| provider.custom) {
            return Ok(Credential::None);
        }
        let variables = vendor(&model.provider)
            .map(|vendor| vendor.env_keys.iter().map(|key| key.name).collect::<Vec<_>>().join(" or "))
            .unwrap_or_else(|| "apiKey in models.json".to_owned());
        Err(CredentialError::Missing { provider: model.provider.clone(), variables })
    }

    fn command_line_key(&self, provider: &str) -> Option<&str> {
        self.command_line.as_ref().filter(|(owner, _)| owner == provider).map(|(_, key)| key.as_str())
    }

    fn environment_key(&self, provider: &str) -> Option<Credential> {
        vendor(provider)?.env_keys.iter().find_map(|key| {
            let value = self.env.get(key.name)?.trim().to_owned();
            if value.is_empty() {
                return None;
            }
            Some(if key.bearer { Credential::Bearer(value) } else { Credential::ApiKey(value) })
        })
    }
}

/// A config value: `!command` is the command's output, anything else a template.
fn resolve_template(template: &str, env: &Env) -> Result<String, String> {
    let key = match template.strip_prefix('!') {
        Some(command) => output_of(command)?,
        None => expand(template, env)?,
    };
    if key.is_empty() { Err("the configured apiKey is empty".to_owned()) } else { Ok(key) }
}

/// First line of what a shell command prints.
fn output_of(command: &str) -> Result<String, String> {
    let output = Command::new("sh")
        .args(["-c", command])
        .stdin(std::process::Stdio::null())
        .output()
        .map_err(|error| format!("cannot run its command: {error}"))?;
    if !output.status.success() {
        return Err(format!("its command failed ({})", output.status));
    }
    let text = String::from_utf8_lossy(&output.stdout);
    Ok(text.lines().next().unwrap_or_default().trim().to_owned())
}

/// Replaces `$NAME` and `${NAME}` by variables; `$$` and `$!` are `$` and `!`.
///
/// # Errors
/// Names the variable that is not set.
fn expand(template: &str, env: &Env) -> Result<String, String> {
    let mut out = String::new();
    let mut rest = template;
    while let Some(at) = rest.find('$') {
        out.push_str(&rest[..at]);
        rest = &rest[at + 1..];
        if let Some(after) = rest.strip_prefix(['$', '!']) {
            out.push_str(&rest[..rest.len() - after.len()]);
            rest = after;
            continue;
        }
        let (name, after) = match rest.strip_prefix('{').and_then(|braced| braced.split_once('}')) {
            Some(split) => split,
            None => {
                let end = rest.find(|c: char| c != '_' && !c.is_ascii_alphanumeric()).unwrap_or(rest.len());
                rest.split_at(end)
            }
        };
        if name.is_empty() {
            out.push('$');
        } else {
            out.push_str(
                &env.get(name).ok_or_else(|| format!("the environment variable {name} is not set"))?,
            );
        }
        rest = after;
    }
    out.push_str(rest);
    Ok(out)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn templates_take_variables() {
        let env = Env::of(&[("A", "x"), ("B_2", "y")]);
        let check = |template: &str, expected: Result<&str, &str>| {
            assert_eq!(expand(template, &env).as_deref().map_err(String::as_str), expected, "{template}");
        };
        check("plain", Ok("plain"));
        check("$A-${B_2}!", Ok("x-y!"));
        check("$$A $!", Ok("$A !"));
        check("cost 5$", Ok("cost 5$"));
        check("$NONE", Err("the environment variable NONE is not set"));
    }

    #[test]
    fn keys_come_from_the_nearest_place() {
        let mut catalog = Catalog::builtin();
        let models = r#"{"providers":{"deepseek":{"apiKey":"$MINE"},"home":{"baseUrl":"http://h","api":"openai-completions","models":[{"id":"m"}]}}}"#;
        catalog.add_user_models(models).unwrap();
        let env = Env::of(&[
            ("MINE", "from-file"),
            ("DEEPSEEK_API_KEY", "from-env"),
            ("ANTHROPIC_AUTH_TOKEN", "tok\n"),
        ]);
        let mut credentials = Credentials::new(env);
        let resolve = |credentials: &Credentials, provider: &str| {
            let model = catalog.models().iter().find(|model| model.provider == provider).unwrap();
            credentials.resolve(model, &catalog)
        };
        assert_eq!(resolve(&credentials, "deepseek"), Ok(Credential::ApiKey("from-file".to_owned())));
        assert_eq!(resolve(&credentials, "anthropic"), Ok(Credential::Bearer("tok".to_owned())));
        assert_eq!(resolve(&credentials, "home"), Ok(Credential::None));
        credentials.set_command_line_key("deepseek", "typed");
        assert_eq!(resolve(&credentials, "deepseek"), Ok(Credential::ApiKey("typed".to_owned())));
        let missing = resolve(&credentials, "groq").unwrap_err().to_string();
        assert_eq!(
            missing,
            "no key for groq; set GROQ_API_KEY, or choose another model with /model or --model"
        );
    }
}

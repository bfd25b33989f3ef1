//! What the client can do, and what pi tells it about itself.

use agent_client_protocol_schema::ProtocolVersion;
use agent_client_protocol_schema::v1::{
    AgentCapabilities, AuthMethod, AuthMethodAgent, AuthMethodTerminal, ClientCapabilities, Implementation,
    InitializeResponse, McpCapabilities, Meta, PromptCapabilities, SessionCapabilities,
    SessionCloseCapabilities, SessionDeleteCapabilities, SessionForkCapabilities, SessionListCapabilities,
    SessionResumeCapabilities,
};
use serde_json::{Value, json};

/// The capabilities of the client that pi uses.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(super) struct ClientFeatures {
    /// Serves `fs/read_text_file`.
    pub(super) reads_files: bool,
    /// Serves `fs/write_text_file`.
    pub(super) writes_files: bool,
    /// Shows notices apart from the conversation.
    pub(super) notices: bool,
    /// Shows compactions.
    pub(super) compactions: bool,
    /// Draws terminals from output in `_meta`.
    pub(super) terminal_output: bool,
    /// Can run pi in a terminal to sign in.
    pub(super) terminal_auth: bool,
    /// As before `terminal_auth` was part of the protocol: with a whole command.
    pub(super) terminal_auth_command: bool,
}

impl ClientFeatures {
    pub(super) fn of(capabilities: &ClientCapabilities) -> Self {
        let meta = |name: &str| {
            capabilities.meta.as_ref().and_then(|meta| meta.get(name)).and_then(Value::as_bool) == Some(true)
        };
        let session = capabilities.session.as_ref();
        Self {
            reads_files: capabilities.fs.read_text_file,
            writes_files: capabilities.fs.write_text_file,
            notices: session.is_some_and(|session| session.notices.is_some()),
            compactions: session.is_some_and(|session| session.compaction.is_some()),
            terminal_output: meta("terminal_output"),
            terminal_auth: capabilities.auth.terminal,
            terminal_auth_command: meta("terminal-auth"),
        }
    }
}

/// The way to sign in that needs no terminal: keys that are there already.
pub(super) const STORED_KEYS: &str = "stored-keys";
/// Signing in on a terminal.
pub(super) const TERMINAL_LOGIN: &str = "terminal-login";

/// The response to `initialize`. There is always a method to sign in, because clients and
/// their registries expect one. `program` is the path of this program.
pub(super) fn initialized(features: ClientFeatures, program: Option<&str>) -> InitializeResponse {
    let prompt = PromptCapabilities::new().image(true).embedded_context(true);
    let session = SessionCapabilities::new()
        .list(SessionListCapabilities::new())
        .delete(SessionDeleteCapabilities::new())
        .resume(SessionResumeCapabilities::new())
        .close(SessionCloseCapabilities::new())
        .fork(SessionForkCapabilities::new());
    let capabilities = AgentCapabilities::new()
        .load_session(true)
        .prompt_capabilities(prompt)
        .mcp_capabilities(McpCapabilities::new())
        .session_capabilities(session);
    let info = Implementation::new("pi", env!("CARGO_PKG_VERSION")).title("pi".to_owned());
    // Only version 1 is supported; a client that cannot use it closes the connection.
    InitializeResponse::new(ProtocolVersion::V1)
        .agent_capabilities(capabilities)
        .agent_info(info)
        .auth_methods(auth_methods(features, program))
}

pub(super) fn auth_methods(features: ClientFeatures, program: Option<&str>) -> Vec<AuthMethod> {
    let stored = AuthMethodAgent::new(STORED_KEYS, "Use the keys of pi").description(
        "Keys from environment variables, models.json and auth.json, and accounts that are signed in"
            .to_owned(),
    );
    let mut methods = vec![AuthMethod::Agent(stored)];
    let description = "Save a key or sign in to an account".to_owned();
    if features.terminal_auth {
        let terminal = AuthMethodTerminal::new(TERMINAL_LOGIN, "Log in with pi")
            .description(description)
            .args(vec!["--login".to_owned()]);
        methods.push(AuthMethod::Terminal(terminal));
    } else if let Some(program) = program.filter(|_| features.terminal_auth_command) {
        let command = json!({ "label": "pi login", "command": program, "args": ["acp", "--login"] });
        let meta = Meta::from_iter([("terminal-auth".to_owned(), command)]);
        let terminal =
            AuthMethodAgent::new(TERMINAL_LOGIN, "Log in with pi").description(description).meta(meta);
        methods.push(AuthMethod::Agent(terminal));
    }
    methods
}

#[cfg(test)]
mod tests {
    use super::*;

    fn features(capabilities: Value) -> ClientFeatures {
        ClientFeatures::of(&serde_json::from_value(capabilities).unwrap())
    }

    #[test]
    fn missing_and_malformed_capabilities_are_off() {
        for capabilities in
            [json!({}), json!({ "fs": 7, "session": [], "_meta": { "terminal_output": "yes" } })]
        {
            assert_eq!(features(capabilities), ClientFeatures::default());
        }
    }

    #[test]
    fn there_is_always_a_way_to_sign_in_and_a_terminal_where_the_client_has_one() {
        let check = |capabilities: Value, expected: Value| {
            let methods = auth_methods(features(capabilities), Some("/bin/pi"));
            let methods: Vec<Value> =
                methods.iter().map(|method| serde_json::to_value(method).unwrap()).collect();
            assert_eq!(methods[0]["id"], STORED_KEYS);
            assert_eq!(methods.get(1).cloned().unwrap_or_default(), expected);
        };
        check(json!({}), Value::Null);
        let named = json!({
            "id": TERMINAL_LOGIN, "name": "Log in with pi",
            "description": "Save a key or sign in to an account",
        });
        let mut terminal = named.clone();
        terminal["type"] = "terminal".into();
        terminal["args"] = json!(["--login"]);
        check(json!({ "auth": { "terminal": true } }), terminal);
        let mut agent = named;
        agent["_meta"] = json!({ "terminal-auth": {
            "label": "pi login", "command": "/bin/pi", "args": ["acp", "--login"],
        } });
        check(json!({ "_meta": { "terminal-auth": true } }), agent);
    }
}

//! TABLE: the methods that clients may call; the parser and `docs/acp.md` read it.

use agent_client_protocol_schema::v1::{
    AuthenticateRequest, CancelNotification, CancelRequestNotification, CloseSessionRequest,
    DeleteSessionRequest, Error, ErrorCode, ForkSessionRequest, InitializeRequest, ListSessionsRequest,
    LoadSessionRequest, NewSessionRequest, PromptRequest, ResumeSessionRequest,
    SetSessionConfigOptionRequest, SetSessionModeRequest,
};
use serde::de::DeserializeOwned;

/// A method that clients may call.
#[derive(Debug)]
pub struct AcpMethodRow {
    pub name: &'static str,
    /// One line, imperative, no full stop.
    pub help: &'static str,
    parse: Parse,
}

#[derive(Debug)]
enum Parse {
    Request(fn(&str) -> serde_json::Result<AgentRequest>),
    Notification(fn(&str) -> serde_json::Result<AgentNotification>),
}

/// A request of the client, by what it asks for.
#[derive(Debug)]
#[expect(clippy::large_enum_variant, reason = "a request lives in a box, one at a time")]
pub(super) enum AgentRequest {
    Initialize(InitializeRequest),
    Authenticate(AuthenticateRequest),
    NewSession(NewSessionRequest),
    LoadSession(LoadSessionRequest),
    ResumeSession(ResumeSessionRequest),
    ForkSession(ForkSessionRequest),
    ListSessions(ListSessionsRequest),
    DeleteSession(DeleteSessionRequest),
    CloseSession(CloseSessionRequest),
    Prompt(PromptRequest),
    SetMode(SetSessionModeRequest),
    SetConfigOption(SetSessionConfigOptionRequest),
}

#[derive(Debug)]
pub(super) enum AgentNotification {
    Cancel(CancelNotification),
    CancelRequest(CancelRequestNotification),
}

const fn request(
    name: &'static str,
    help: &'static str,
    parse: fn(&str) -> serde_json::Result<AgentRequest>,
) -> AcpMethodRow {
    AcpMethodRow { name, help, parse: Parse::Request(parse) }
}

const fn notification(
    name: &'static str,
    help: &'static str,
    parse: fn(&str) -> serde_json::Result<AgentNotification>,
) -> AcpMethodRow {
    AcpMethodRow { name, help, parse: Parse::Notification(parse) }
}

/// Reads parameters; `wrap` is the variant they belong to.
fn read<P: DeserializeOwned, T>(params: &str, wrap: fn(P) -> T) -> serde_json::Result<T> {
    serde_json::from_str(params).map(wrap)
}

/// Every method, in the order in which clients use them.
pub const ACP_METHODS: &[AcpMethodRow] = &[
    request("initialize", "Agree on the version and the capabilities of both sides", |params| {
        read(params, AgentRequest::Initialize)
    }),
    request("authenticate", "Check that pi has a key or a sign-in", |params| {
        read(params, AgentRequest::Authenticate)
    }),
    request("session/new", "Start a session in a directory", |params| read(params, AgentRequest::NewSession)),
    request("session/load", "Continue a session, and replay its conversation first", |params| {
        read(params, AgentRequest::LoadSession)
    }),
    request("session/resume", "Continue a session without a replay", |params| {
        read(params, AgentRequest::ResumeSession)
    }),
    request("session/fork", "Continue a copy of a session (not stable in the protocol yet)", |params| {
        read(params, AgentRequest::ForkSession)
    }),
    request("session/list", "List the sessions of a directory or all, 50 at a time", |params| {
        // All of its parameters are optional.
        read(if params == "null" { "{}" } else { params }, AgentRequest::ListSessions)
    }),
    request("session/delete", "Delete a session, to the trash where there is one", |params| {
        read(params, AgentRequest::DeleteSession)
    }),
    request("session/close", "Cancel what runs and close the session; its file stays", |params| {
        read(params, AgentRequest::CloseSession)
    }),
    request("session/prompt", "Send a prompt; the response comes when its run has ended", |params| {
        read(params, AgentRequest::Prompt)
    }),
    request("session/set_mode", "Rejected: pi has no modes; models and thinking are options", |params| {
        read(params, AgentRequest::SetMode)
    }),
    request("session/set_config_option", "Select the model or the thinking level", |params| {
        read(params, AgentRequest::SetConfigOption)
    }),
    notification("session/cancel", "Cancel the prompts of a session; they end with `cancelled`", |params| {
        read(params, AgentNotification::Cancel)
    }),
    notification("$/cancel_request", "Cancel one request; a prompt ends with `cancelled`", |params| {
        read(params, AgentNotification::CancelRequest)
    }),
];

/// # Errors
/// The error of the response: an unknown method, or parameters it does not have.
pub(super) fn parse_request(method: &str, params: &str) -> Result<AgentRequest, Error> {
    match ACP_METHODS.iter().find(|row| row.name == method).map(|row| &row.parse) {
        Some(Parse::Request(parse)) => {
            parse(params).map_err(|error| invalid_params(format!("{method}: {}", without_place(&error))))
        }
        Some(Parse::Notification(_)) => Err(Error::new(
            ErrorCode::MethodNotFound.into(),
            format!("{method} is a notification; send it without an id"),
        )),
        None => Err(Error::new(ErrorCode::MethodNotFound.into(), format!("there is no method {method}"))),
    }
}

/// # Errors
/// Why the notification is ignored.
pub(super) fn parse_notification(method: &str, params: &str) -> Result<AgentNotification, String> {
    match ACP_METHODS.iter().find(|row| row.name == method).map(|row| &row.parse) {
        Some(Parse::Notification(parse)) => {
            parse(params).map_err(|error| format!("{method}: {}", without_place(&error)))
        }
        Some(Parse::Request(_)) => Err(format!("{method} needs an id")),
        None => Err(format!("there is no notification {method}")),
    }
}

pub(super) fn invalid_params(message: impl Into<String>) -> Error {
    Error::new(ErrorCode::InvalidParams.into(), message)
}

/// The place in the parameters is not one in the line.
fn without_place(error: &serde_json::Error) -> String {
    let text = error.to_string();
    text.rsplit_once(" at line ").map_or(text.clone(), |(text, _)| text.to_owned())
}

#[cfg(test)]
mod tests {
    use agent_client_protocol_schema::v1::{AGENT_METHOD_NAMES, PROTOCOL_LEVEL_METHOD_NAMES};
    use serde_json::Value;

    use super::*;

    #[test]
    fn every_method_of_the_schema_has_a_row_or_a_reason() {
        // What is stored on the client's behalf is removed with pi auth logout.
        let without = ["logout"];
        let Ok(Value::Object(names)) = serde_json::to_value(AGENT_METHOD_NAMES) else { panic!("no names") };
        let general = serde_json::to_value(PROTOCOL_LEVEL_METHOD_NAMES).unwrap();
        let mut names: Vec<String> = names
            .values()
            .chain(general.as_object().unwrap().values())
            .map(|name| name.as_str().unwrap().to_owned())
            .collect();
        names.retain(|name| !without.contains(&name.as_str()));
        names.sort();
        let mut rows: Vec<&str> = ACP_METHODS.iter().map(|row| row.name).collect();
        rows.sort_unstable();
        assert_eq!(rows, names);
    }
}

//! Asks the client what the session asks the user.
//!
//! The protocol asks about tool calls only, so that a question about trust or cost is shown
//! as a call of its own, which ends with the answer.

use std::sync::Arc;

use agent_client_protocol_schema::v1::{
    PermissionOption, PermissionOptionKind, RequestPermissionOutcome, RequestPermissionRequest,
    RequestPermissionResponse, SessionId, SessionUpdate, ToolCallStatus, ToolCallUpdate,
    ToolCallUpdateFields, ToolKind,
};

use crate::session::{Question, QuestionKind, TRUST_OPTIONS, TrustChoice};

use super::client::Client;
use super::tool_calls::{self, Folders};

/// What became of a question.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Permission {
    /// The index of an option.
    Chosen(usize),
    /// The user declined to answer, or the client could not ask for the reason given.
    None(Option<String>),
    /// Somebody else answered, or the run was cancelled.
    Withdrawn,
}

/// Asks the client. The request is sent at once; dropping the future cancels it.
pub(super) fn ask(
    client: &Arc<Client>,
    session: &SessionId,
    question: &Question,
    folders: &Folders,
) -> impl Future<Output = Permission> + Send + use<> {
    let options = question.options.iter().enumerate().map(|(index, option)| {
        PermissionOption::new(index.to_string(), option.as_str(), kind(&question.kind, index))
    });
    let call = call(question, folders);
    let params = RequestPermissionRequest::new(session.clone(), call, options.collect());
    let reply = client.request("session/request_permission", &params);
    let n_options = question.options.len();
    async move {
        let reply = match reply.wait().await {
            Ok(reply) => reply,
            Err(error) => return Permission::None(Some(error.message)),
        };
        match serde_json::from_value::<RequestPermissionResponse>(reply) {
            Ok(response) => chosen(&response.outcome, n_options),
            Err(error) => Permission::None(Some(error.to_string())),
        }
    }
}

fn chosen(outcome: &RequestPermissionOutcome, n_options: usize) -> Permission {
    match outcome {
        RequestPermissionOutcome::Selected(selected) => {
            let index = selected.option_id.0.parse().ok().filter(|index| *index < n_options);
            match index {
                Some(index) => Permission::Chosen(index),
                None => Permission::None(Some(format!("there is no option {}", selected.option_id))),
            }
        }
        _ => Permission::None(None),
    }
}

fn call(question: &Question, folders: &Folders) -> ToolCallUpdate {
    match &question.kind {
        QuestionKind::ToolCall(call) => {
            let view = tool_calls::describe(&call.name, &call.arguments, folders);
            let fields = ToolCallUpdateFields::new()
                .title(question.text.clone())
                .name(call.name.clone())
                .kind(tool_calls::kind(&call.name))
                .status(ToolCallStatus::Pending)
                .content(view.content)
                .locations(view.locations)
                .raw_input(call.arguments.clone());
            ToolCallUpdate::new(call.id.clone(), fields)
        }
        QuestionKind::Trust | QuestionKind::Budget(_) => {
            let fields = ToolCallUpdateFields::new()
                .title(question.text.clone())
                .kind(ToolKind::Other)
                .status(ToolCallStatus::Pending);
            ToolCallUpdate::new(own_call(question), fields)
        }
    }
}

/// The id of the call that stands for a question.
fn own_call(question: &Question) -> String {
    format!("question-{}", question.id.get())
}

/// The end of the call that stands for a question; `None` if it is a real one.
pub(super) fn closed(question: &Question) -> Option<SessionUpdate> {
    match question.kind {
        QuestionKind::ToolCall(_) => None,
        QuestionKind::Trust | QuestionKind::Budget(_) => {
            let fields = ToolCallUpdateFields::new().status(ToolCallStatus::Completed);
            Some(SessionUpdate::ToolCallUpdate(ToolCallUpdate::new(own_call(question), fields)))
        }
    }
}

fn kind(question: &QuestionKind, index: usize) -> PermissionOptionKind {
    match question {
        QuestionKind::ToolCall(_) if index == 0 => PermissionOptionKind::AllowOnce,
        QuestionKind::ToolCall(_) => PermissionOptionKind::RejectOnce,
        QuestionKind::Budget(_) if index == 0 => PermissionOptionKind::RejectOnce,
        QuestionKind::Budget(_) => PermissionOptionKind::AllowOnce,
        QuestionKind::Trust => match TRUST_OPTIONS.get(index).map(|(choice, _)| *choice) {
            Some(TrustChoice::Folder | TrustChoice::Parent) => PermissionOptionKind::AllowAlways,
            Some(TrustChoice::Session) => PermissionOptionKind::AllowOnce,
            Some(TrustChoice::No) => PermissionOptionKind::RejectAlways,
            Some(TrustChoice::NotNow) | None => PermissionOptionKind::RejectOnce,
        },
    }
}

#[cfg(test)]
mod tests {
    use agent_client_protocol_schema::v1::SelectedPermissionOutcome;

    use super::*;

    #[test]
    fn only_options_that_were_offered_are_chosen() {
        let check = |option: &str, expected: Permission| {
            let selected = SelectedPermissionOutcome::new(option.to_owned());
            assert_eq!(chosen(&RequestPermissionOutcome::Selected(selected), 2), expected);
        };
        check("1", Permission::Chosen(1));
        check("2", Permission::None(Some("there is no option 2".to_owned())));
        check("allow", Permission::None(Some("there is no option allow".to_owned())));
        assert_eq!(chosen(&RequestPermissionOutcome::Cancelled, 2), Permission::None(None));
    }
}

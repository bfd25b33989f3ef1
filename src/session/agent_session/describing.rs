//! Reports about the session for its user.

use crate::ai::SystemState;

use super::super::compaction::reserve;
use super::super::context_report::{ContextInput, ContextReport};
use super::super::run;
use super::AgentSession;

/// The parts of the next request of `session`. Reads entries that left memory; blocks for a
/// short time.
pub(super) fn context_report(session: &mut AgentSession) -> ContextReport {
    let branch = session.log.context_branch();
    let project = session.project.context();
    let tools = session.tools.registry();
    let said = SystemState::default();
    let system = run::system_delta(&session.services, project, tools, session.project.cwd(), &said);
    let model = session.model.model();
    let settings = session.settings.get();
    let compaction = &settings.values.compaction;
    let state = session.outbox.snapshot();
    ContextReport::of(&ContextInput {
        system: system.as_ref(),
        context_files: &project.context_files,
        skills: &project.skills,
        templates: &project.templates,
        branch: &branch,
        counted: state.context.counted(),
        window: model.context_window,
        reserve: compaction.enabled.then(|| reserve(compaction.budget(&model.reference()), model)),
        n_pinned: state.pinned.len(),
    })
}

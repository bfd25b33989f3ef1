//! Model and thinking level as options that clients show and change.

use agent_client_protocol_schema::v1::{
    SessionConfigOption, SessionConfigOptionCategory, SessionConfigSelectOption,
};

use crate::ai::{DEMO_PROVIDER, Model, ThinkingLevel};
use crate::session::{Scope, Services, SessionCommand, SessionState};

pub(super) const MODEL: &str = "model";
pub(super) const THINKING: &str = "thought_level";

/// The options of a session, the most important first. The thinking level is left out for
/// models without a choice. It is no mode: clients show modes as permissions.
pub(super) fn of(services: &Services, state: &SessionState) -> Vec<SessionConfigOption> {
    let mut options = vec![model(services, state)];
    let levels = state.model.thinking_levels();
    if levels.len() > 1 {
        let values: Vec<SessionConfigSelectOption> =
            levels.iter().map(|level| SessionConfigSelectOption::new(level.name(), level.name())).collect();
        let option = SessionConfigOption::select(THINKING, "Thinking", state.thinking.name(), values)
            .description("How much the model thinks before it answers".to_owned())
            .category(SessionConfigOptionCategory::ThoughtLevel);
        options.push(option);
    }
    options
}

fn model(services: &Services, state: &SessionState) -> SessionConfigOption {
    let current = &state.model;
    let mut models = services.usable_models();
    models.retain(|model| model.provider != DEMO_PROVIDER || current.provider == DEMO_PROVIDER);
    if !models.iter().any(|model| model.reference() == current.reference()) {
        models.insert(0, current.clone());
    }
    let has_several = models.iter().any(|model| model.provider != current.provider);
    let values: Vec<SessionConfigSelectOption> = models
        .iter()
        .map(|model| SessionConfigSelectOption::new(model.reference(), shown(model, has_several)))
        .collect();
    SessionConfigOption::select(MODEL, "Model", current.reference(), values)
        .category(SessionConfigOptionCategory::Model)
}

fn shown(model: &Model, has_several: bool) -> String {
    let name = if model.name.is_empty() { &model.id } else { &model.name };
    if has_several { format!("{name} ({})", model.provider) } else { name.clone() }
}

/// The command that sets an option.
///
/// # Errors
/// Why there is no such option or value.
pub(super) fn change(
    services: &Services,
    state: &SessionState,
    id: &str,
    value: &str,
) -> Result<SessionCommand, String> {
    match id {
        MODEL => {
            let known = services.usable_models().iter().any(|model| model.reference() == value);
            if !known && state.model.reference() != value {
                return Err(format!("there is no model {value} with a key"));
            }
            Ok(SessionCommand::SetModel { reference: value.to_owned(), scope: Scope::Session })
        }
        THINKING => {
            let level = ThinkingLevel::parse(value).filter(|level| state.model.supports(*level));
            let level = level.ok_or_else(|| {
                let names: Vec<&str> =
                    state.model.thinking_levels().into_iter().map(ThinkingLevel::name).collect();
                format!("{} has no thinking level {value}; it has {}", state.model.id, names.join(", "))
            })?;
            Ok(SessionCommand::SetThinking { level, scope: Scope::Session })
        }
        _ => Err(format!("there is no option {id}; there are {MODEL} and {THINKING}")),
    }
}

//! The tools of a session, which come and go while it is open.

use std::collections::BTreeSet;
use std::sync::Arc;

use crate::agent::{Tool, ToolRegistry};

use super::super::handle::SessionError;
use super::super::outbox::Outbox;
use super::super::refusal::Refusal;
use super::super::state::SessionState;

/// The tools the model may call from the next request on. The transcript then says what
/// changed, in place for models that read it there.
pub(super) struct SessionTools {
    registry: ToolRegistry,
    /// Added since the task started; they outlive a switch to another session.
    added: Vec<Arc<dyn Tool>>,
    /// Names of those removed; the same.
    removed: BTreeSet<String>,
    outbox: Outbox,
}

impl SessionTools {
    pub(super) fn new(registry: ToolRegistry, outbox: Outbox) -> Self {
        Self { registry, added: Vec::new(), removed: BTreeSet::new(), outbox }
    }

    pub(super) fn registry(&self) -> &ToolRegistry {
        &self.registry
    }

    /// Continues with the tools of another session, changed as those before.
    pub(super) fn replace(&mut self, registry: ToolRegistry) {
        self.registry = registry;
        for name in &self.removed {
            self.registry.remove(name);
        }
        for tool in &self.added {
            self.registry.add(Arc::clone(tool));
        }
    }

    /// Adds a tool, in place of the one with its name if there is one.
    ///
    /// # Errors
    /// When its spec would be rejected with every request.
    pub(super) fn add(&mut self, tool: Arc<dyn Tool>) -> Result<(), SessionError> {
        let spec = tool.spec();
        spec.check().map_err(|error| Refusal::Tool { reason: error.0 })?;
        self.removed.remove(&spec.name);
        self.added.retain(|known| known.spec().name != spec.name);
        self.added.push(Arc::clone(&tool));
        self.registry.add(tool);
        self.outbox.update(|state| self.show(state));
        Ok(())
    }

    /// Removes a tool. Calls of it that run go on; later ones fail.
    ///
    /// # Errors
    /// When there is no such tool.
    pub(super) fn remove(&mut self, name: String) -> Result<(), SessionError> {
        if !self.registry.remove(&name) {
            return Err(Refusal::NoSuchTool { name }.into());
        }
        self.added.retain(|known| known.spec().name != name);
        self.removed.insert(name);
        self.outbox.update(|state| self.show(state));
        Ok(())
    }

    /// Sets the fields of a snapshot that tell of tools.
    pub(super) fn show(&self, state: &mut SessionState) {
        state.tools = self.registry.iter().map(|tool| tool.spec().name.clone()).collect();
    }
}

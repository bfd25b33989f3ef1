//! A catalogue that changes while it is used.

use std::sync::{Arc, PoisonError, RwLock};

use super::Catalog;

/// The catalogue in force. Readers keep the one they got; the next reader gets
/// the new one.
#[derive(Debug, Default)]
pub struct LiveCatalog(RwLock<Arc<Catalog>>);

impl LiveCatalog {
    pub fn new(catalog: Catalog) -> Self {
        Self(RwLock::new(Arc::new(catalog)))
    }

    pub fn get(&self) -> Arc<Catalog> {
        // Replaced as a whole, so a panic elsewhere leaves a whole one.
        Arc::clone(&self.0.read().unwrap_or_else(PoisonError::into_inner))
    }

    /// Puts a changed copy in force.
    pub fn update(&self, change: impl FnOnce(&mut Catalog)) {
        let mut current = self.0.write().unwrap_or_else(PoisonError::into_inner);
        let mut catalog = Catalog::clone(&current);
        change(&mut catalog);
        *current = Arc::new(catalog);
    }
}

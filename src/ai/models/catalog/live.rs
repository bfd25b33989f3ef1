//! A catalogue that can change while the program runs.

use std::sync::{Arc, PoisonError, RwLock};

use super::Catalog;

/// The current catalogue. Readers keep the version they received; later readers get
/// the new one.
#[derive(Debug, Default)]
pub struct LiveCatalog(RwLock<Arc<Catalog>>);

impl LiveCatalog {
    /// Begins with `catalog`.
    pub fn new(catalog: Catalog) -> Self {
        Self(RwLock::new(Arc::new(catalog)))
    }

    /// The catalogue as it is now.
    pub fn get(&self) -> Arc<Catalog> {
        // The value is replaced as a whole, so it is valid even after a panic elsewhere.
        Arc::clone(&self.0.read().unwrap_or_else(PoisonError::into_inner))
    }

    /// Replaces the catalogue by a changed copy.
    pub fn update(&self, change: impl FnOnce(&mut Catalog)) {
        let mut current = self.0.write().unwrap_or_else(PoisonError::into_inner);
        let mut catalog = Catalog::clone(&current);
        change(&mut catalog);
        *current = Arc::new(catalog);
    }
}

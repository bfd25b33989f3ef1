//! The models that the user cycles through with a key.

use std::sync::Arc;

use globset::GlobBuilder;

use super::super::model::Model;
use super::{Catalog, MatchError, Matched};
use crate::ai::messages::ThinkingLevel;

/// A model of the scope, with the thinking level of its pattern.
#[derive(Debug, Clone, PartialEq)]
pub struct ScopedModel {
    /// The model.
    pub model: Arc<Model>,
    /// The level after the colon.
    pub thinking: Option<ThinkingLevel>,
}

/// A pattern that selects nothing.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct UnmatchedPattern {
    /// The pattern.
    pub pattern: String,
    /// Why it selects nothing.
    pub problem: String,
}

/// Why a pattern selects nothing.
#[derive(Debug, thiserror::Error)]
enum ScopeProblem {
    #[error("no model matches \"{pattern}\"")]
    NoMatch { pattern: String },
    #[error(transparent)]
    Level(#[from] MatchError),
}

impl ScopedModel {
    /// The pattern that selects this model with this thinking level.
    pub fn pattern(&self) -> String {
        match self.thinking {
            Some(level) => format!("{}:{level}", self.model.reference()),
            None => self.model.reference(),
        }
    }
}

impl Catalog {
    /// The models that match `patterns`, each once, in pattern order: globs over
    /// `provider/id` or id, or references as in [`Self::find`], both with
    /// an optional `:level`. Also returns the patterns without a match. An id that the
    /// list of its provider lacks is assumed only while that list is empty.
    pub fn scope(
        &self,
        patterns: &[String],
        usable: &dyn Fn(&str) -> bool,
    ) -> (Vec<ScopedModel>, Vec<UnmatchedPattern>) {
        let mut scope: Vec<ScopedModel> = Vec::new();
        let mut unmatched = Vec::new();
        for pattern in patterns.iter().map(|pattern| pattern.trim()).filter(|pattern| !pattern.is_empty()) {
            let found = self.matching(pattern, usable).unwrap_or_else(|error| {
                unmatched.push(UnmatchedPattern { pattern: pattern.to_owned(), problem: error.to_string() });
                Vec::new()
            });
            for found in found {
                let is_known = scope.iter().any(|known| known.model.reference() == found.model.reference());
                if !is_known {
                    scope.push(found);
                }
            }
        }
        (scope, unmatched)
    }

    /// At least one model.
    fn matching(
        &self,
        pattern: &str,
        usable: &dyn Fn(&str) -> bool,
    ) -> Result<Vec<ScopedModel>, ScopeProblem> {
        let none = || ScopeProblem::NoMatch { pattern: pattern.to_owned() };
        if !pattern.contains(['*', '?', '[', '{']) {
            return match self.find(pattern, None, usable) {
                Ok(Matched { model, assumed: true, .. }) if !self.models_of(&model.provider).is_empty() => {
                    Err(none())
                }
                Ok(Matched { model, thinking, .. }) => Ok(vec![ScopedModel { model, thinking }]),
                Err(error @ MatchError::NoLevel { .. }) => Err(error.into()),
                Err(MatchError::Unknown { .. } | MatchError::Ambiguous { .. }) => Err(none()),
            };
        }
        let mut found = self.globbed(pattern, None, usable);
        if let Some((rest, level)) = pattern.rsplit_once(':').filter(|_| found.is_empty()) {
            found = ThinkingLevel::parse(level)
                .map(|level| self.globbed(rest, Some(level), usable))
                .unwrap_or_default();
        }
        if found.is_empty() { Err(none()) } else { Ok(found) }
    }

    fn globbed(
        &self,
        glob: &str,
        thinking: Option<ThinkingLevel>,
        usable: &dyn Fn(&str) -> bool,
    ) -> Vec<ScopedModel> {
        // A star matches slashes too, because ids of routers contain them.
        let Ok(glob) = GlobBuilder::new(glob).case_insensitive(true).build() else { return Vec::new() };
        let matcher = glob.compile_matcher();
        let usable = self.providers().iter().filter(|info| usable(&info.id));
        let matching = usable
            .flat_map(|info| self.models_of(&info.id))
            .filter(|model| matcher.is_match(&model.id) || matcher.is_match(model.reference()));
        matching.map(|model| ScopedModel { model: Arc::clone(model), thinking }).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn patterns_name_each_model_once_and_in_their_order() {
        let mut catalog = Catalog::default();
        let text = r#"{"providers":{
            "a": {"baseUrl": "http://h", "api": "openai-completions", "models": [{"id": "one"}, {"id": "x/two:free"}]},
            "b": {"baseUrl": "http://h", "api": "openai-completions", "models": [{"id": "one"}, {"id": "three"}]},
            "c": {"baseUrl": "http://h", "api": "openai-completions", "models": [{"id": "unusable"}]}
        }}"#;
        catalog.add_user_models(text).unwrap();
        let check = |patterns: &[&str], expected: &str| {
            let patterns: Vec<String> = patterns.iter().map(|pattern| (*pattern).to_owned()).collect();
            let (scope, unmatched) = catalog.scope(&patterns, &|provider| provider != "c");
            let problems = unmatched.into_iter().map(|one| one.problem);
            let shown: Vec<String> = scope.iter().map(ScopedModel::pattern).chain(problems).collect();
            assert_eq!(shown.join(" "), expected, "{patterns:?}");
        };
        check(&["b/three", "a/*"], "b/three a/one a/x/two:free");
        check(&["*one:high", "b/*:low"], "a/one:high b/one:high b/three:low");
        check(&["*:free"], "a/x/two:free");
        check(&["B/ONE", "b/one"], "b/one");
        check(&["c/*", "nothing", " "], "no model matches \"c/*\" no model matches \"nothing\"");
        check(&["[", "thre"], "b/three no model matches \"[\"");
        check(&["a/new", "a/one"], "a/one no model matches \"a/new\"");
    }
}

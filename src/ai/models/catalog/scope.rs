//! The models that the user cycles through with a key.

use std::sync::Arc;

use globset::{GlobBuilder, GlobMatcher};

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
    /// The pattern as it was written, which may select others too.
    pub pattern: String,
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
    /// The pattern that selects this model alone, with this thinking level.
    pub fn exact_pattern(&self) -> String {
        match self.thinking {
            Some(level) => format!("{}:{level}", self.model.reference()),
            None => self.model.reference(),
        }
    }
}

/// A model that a pattern selects, and the level that it names.
type Match = (Arc<Model>, Option<ThinkingLevel>);

/// Whether a glob, with or without a level, selects the model of this reference.
pub fn glob_selects(pattern: &str, reference: &str) -> bool {
    let without_level = pattern.rsplit_once(':').map(|(rest, _)| rest);
    let globs = [Some(pattern), without_level].into_iter().flatten().filter(|glob| is_glob(glob));
    globs.filter_map(matcher).any(|matcher| selects(&matcher, reference))
}

fn is_glob(pattern: &str) -> bool {
    pattern.contains(['*', '?', '[', '{'])
}

fn matcher(glob: &str) -> Option<GlobMatcher> {
    // A star matches slashes too, because ids of routers contain them.
    GlobBuilder::new(glob).case_insensitive(true).build().ok().map(|glob| glob.compile_matcher())
}

/// Whether a glob matches a reference, or the id in it.
fn selects(matcher: &GlobMatcher, reference: &str) -> bool {
    matcher.is_match(reference) || reference.split_once('/').is_some_and(|(_, id)| matcher.is_match(id))
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
            for (model, thinking) in found {
                if !scope.iter().any(|known| known.model.reference() == model.reference()) {
                    scope.push(ScopedModel { model, thinking, pattern: pattern.to_owned() });
                }
            }
        }
        (scope, unmatched)
    }

    /// At least one model.
    fn matching(&self, pattern: &str, usable: &dyn Fn(&str) -> bool) -> Result<Vec<Match>, ScopeProblem> {
        let none = || ScopeProblem::NoMatch { pattern: pattern.to_owned() };
        if !is_glob(pattern) {
            return match self.find(pattern, None, usable) {
                Ok(Matched { model, assumed: true, .. }) if !self.models_of(&model.provider).is_empty() => {
                    Err(none())
                }
                Ok(Matched { model, thinking, .. }) => Ok(vec![(model, thinking)]),
                Err(error @ MatchError::NoLevel { .. }) => Err(error.into()),
                Err(MatchError::Unknown { .. } | MatchError::Ambiguous { .. }) => Err(none()),
            };
        }
        let (mut found, mut thinking) = (self.globbed(pattern, usable), None);
        if let Some((rest, level)) = pattern.rsplit_once(':').filter(|_| found.is_empty()) {
            thinking = ThinkingLevel::parse(level);
            found = thinking.map(|_| self.globbed(rest, usable)).unwrap_or_default();
        }
        if found.is_empty() {
            return Err(none());
        }
        Ok(found.into_iter().map(|model| (model, thinking)).collect())
    }

    fn globbed(&self, glob: &str, usable: &dyn Fn(&str) -> bool) -> Vec<Arc<Model>> {
        let Some(matcher) = matcher(glob) else { return Vec::new() };
        let usable = self.providers().iter().filter(|info| usable(&info.id));
        let matching = usable
            .flat_map(|info| self.models_of(&info.id))
            .filter(|model| selects(&matcher, &model.reference()));
        matching.cloned().collect()
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
            let shown: Vec<String> = scope.iter().map(ScopedModel::exact_pattern).chain(problems).collect();
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

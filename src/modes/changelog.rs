//! What changed in pi: the text compiled in, and the part of it that is new after an update.

use crate::config::{self, EffectiveSettings, StartDisplay};
use crate::session::OpenSession;
use crate::util::embedded::embedded_text;
use crate::util::manual;

use super::InteractiveStart;

/// `CHANGELOG.md`.
const TEXT: &str = embedded_text!("../../CHANGELOG.md");
const VERSION: &str = env!("CARGO_PKG_VERSION");

/// What to show after an update.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum News {
    /// Markdown.
    Whole(String),
    Line(String),
}

/// All changes, as Markdown.
pub(super) fn whole() -> String {
    manual::with_joined_lines(TEXT)
}

/// The news since the version the user has seen; remembers that they were seen. A first start
/// has none, and a session that is continued leaves them to the next new one. Blocks for a
/// moment to read the version; it is recorded in the background.
pub(super) fn take_news(start: &InteractiveStart, settings: &EffectiveSettings) -> Option<News> {
    if start.pick_session || !matches!(start.open, OpenSession::New) {
        return None;
    }
    let file = start.services.dirs.seen_version_file();
    let seen = config::seen_version(&file);
    if seen.as_deref() == Some(VERSION) {
        return None;
    }
    // If it cannot be written, the next start tries again.
    drop(tokio::task::spawn_blocking(move || drop(config::record_seen_version(&file, VERSION))));
    let values = &settings.values;
    let news =
        since(TEXT, seen.as_deref()?, VERSION).filter(|_| values.start_display != StartDisplay::Nothing)?;
    Some(match values.collapse_changelog {
        true => News::Line(format!("pi is now version {VERSION}; /changelog shows what changed")),
        false => News::Whole(manual::with_joined_lines(&format!("# What is new in pi\n\n{news}"))),
    })
}

/// The sections of `text` for the versions after `seen` up to `version`; `None` if there are
/// none. What is not released yet belongs to `version`.
fn since(text: &str, seen: &str, version: &str) -> Option<String> {
    let (seen, version) = (numbers(seen)?, numbers(version)?);
    let mut is_new = false;
    let mut news = String::new();
    for line in text.split_inclusive('\n') {
        if let Some(heading) = line.strip_prefix("## ") {
            let of = if heading.trim() == "Unreleased" { Some(version) } else { numbers(heading) };
            is_new = of.is_some_and(|of| seen < of && of <= version);
        }
        if is_new {
            news.push_str(line);
        }
    }
    let news = news.trim();
    (!news.is_empty()).then(|| news.to_owned())
}

/// The numbers of a version at the start of `text`, perhaps in brackets or after a `v`.
fn numbers(text: &str) -> Option<[u64; 3]> {
    let text = text.trim().trim_start_matches(['[', 'v']);
    let end = text.find(|c: char| !c.is_ascii_digit() && c != '.').unwrap_or(text.len());
    let parts = text[..end].split('.').map(|part| part.parse().ok()).collect::<Option<Vec<u64>>>()?;
    parts.try_into().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    const LOG: &str = "# Changelog\n\nAll changes.\n\n## Unreleased\n\n- next\n\n## [1.2.0] - 2026-11-01\n\n- two\n\n\
                       ## v1.1.10\n\n- ten\n\n## 1.1.9\n\n- nine\n\n## Thanks\n\nTo all.\n";

    #[test]
    fn versions_are_compared_by_their_numbers() {
        let check = |text: &str, expected: Option<[u64; 3]>| assert_eq!(numbers(text), expected, "{text}");
        check("1.2.3", Some([1, 2, 3]));
        check("[1.20.3] - 2026-11-01", Some([1, 20, 3]));
        check("v1.2.3-rc.1", Some([1, 2, 3]));
        check("1.2", None);
        check("1..2", None);
        check("Unreleased", None);
        check("99999999999999999999.0.0", None);
    }

    #[test]
    fn news_are_the_sections_after_the_version_that_was_seen() {
        let check = |seen: &str, version: &str, expected: Option<&[&str]>| {
            let news = since(LOG, seen, version);
            let items = news
                .as_deref()
                .map(|news| news.lines().filter_map(|line| line.strip_prefix("- ")).collect::<Vec<_>>());
            assert_eq!(items.as_deref(), expected, "{seen} to {version}");
        };
        check("1.1.9", "1.3.0", Some(&["next", "two", "ten"]));
        check("1.1.10", "1.2.0", Some(&["next", "two"]));
        check("1.1.9", "1.1.10", Some(&["next", "ten"]));
        check("1.3.0", "1.3.0", None);
        check("oops", "1.3.0", None);
    }

    #[test]
    fn the_text_has_a_section_for_this_version() {
        assert!(since(TEXT, "0.0.0", VERSION).is_some());
    }
}

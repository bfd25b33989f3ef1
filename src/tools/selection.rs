//! Which built-in tools a list names.
//!
//! A list has names, and patterns with `*`. Entries that begin with `+` or `-` add tools
//! and remove them, after those named plainly.

use globset::Glob;

use super::BUILTINS;

/// Tools of the original that this version does not have. Lists that both programs read may
/// name them.
const ELSEWHERE: &[&str] = &["codemode", "powershell", "tool_search"];

/// An entry that names no tool.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("unknown tool \"{name}\"; choose from {}", tool_names())]
pub struct UnknownTool {
    /// Without its sign.
    pub name: String,
}

/// The names of the built-in tools, for messages.
pub fn tool_names() -> String {
    BUILTINS.iter().map(|builtin| builtin.name).collect::<Vec<_>>().join(", ")
}

/// Whether `list` only adds and removes.
pub fn only_edits(list: &[String]) -> bool {
    !list.is_empty() && list.iter().all(|entry| edit(entry).is_some())
}

/// An entry that adds (`true`) or removes a tool, and its name.
fn edit(entry: &str) -> Option<(bool, &str)> {
    let added = entry.strip_prefix('+').map(|name| (true, name));
    added.or_else(|| entry.strip_prefix('-').map(|name| (false, name)))
}

/// The tools that a list selects.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ToolSelection {
    /// Built-in tools, in the order of the request.
    pub names: Vec<String>,
    /// Entries that name no tool, here or in the original; a pattern may match none.
    pub unknown: Vec<UnknownTool>,
}

/// The built-in tools that `list` selects, in the order of the request.
///
/// # Errors
/// If an entry names no tool.
pub fn selected(list: &[String]) -> Result<Vec<String>, UnknownTool> {
    let ToolSelection { names, unknown } = select(list);
    unknown.into_iter().next().map_or(Ok(names), Err)
}

/// The built-in tools that the known entries of `list` select. A list that only adds and removes
/// changes the default selection.
pub fn select(list: &[String]) -> ToolSelection {
    let mut active: Vec<bool> =
        BUILTINS.iter().map(|builtin| builtin.default_active && only_edits(list)).collect();
    let plain = list.iter().filter(|entry| edit(entry).is_none()).map(|name| (true, name.as_str()));
    let edits = list.iter().filter_map(|entry| edit(entry));
    let mut unknown = Vec::new();
    for (is_active, name) in plain.chain(edits) {
        let name = name.trim();
        let is_named = matcher(name);
        let mut is_known = name.contains('*') || ELSEWHERE.contains(&name);
        for (_, active) in BUILTINS.iter().zip(&mut active).filter(|(builtin, _)| is_named(builtin.name)) {
            (*active, is_known) = (is_active, true);
        }
        if !is_known {
            unknown.push(UnknownTool { name: name.to_owned() });
        }
    }
    let chosen = BUILTINS.iter().zip(active).filter(|(_, active)| *active);
    ToolSelection { names: chosen.map(|(builtin, _)| builtin.name.to_owned()).collect(), unknown }
}

/// Whether a name is `pattern`, or matches its stars.
fn matcher(pattern: &str) -> impl Fn(&str) -> bool {
    let glob = pattern.contains('*').then(|| Glob::new(pattern).ok()).flatten();
    let glob = glob.map(|glob| glob.compile_matcher());
    move |name| glob.as_ref().map_or(name == pattern, |glob| glob.is_match(name))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(list: &str, expected: Result<&str, &str>) {
        let list: Vec<String> = list.split_whitespace().map(str::to_owned).collect();
        let found = selected(&list).map(|names| names.join(" ")).map_err(|unknown| unknown.name);
        assert_eq!(found.as_deref().map_err(String::as_str), expected, "{list:?}");
    }

    #[test]
    fn plain_names_replace_and_signed_ones_edit() {
        check("", Ok(""));
        check("ls read", Ok("read ls"));
        check("+grep", Ok("read bash edit write grep"));
        check("-bash", Ok("read edit write"));
        check("-* +read", Ok("read"));
        check("read -read bash", Ok("bash"));
        check("read edit +grep -edit", Ok("read grep"));
        check("*", Ok("read bash edit write grep find ls"));
        check("* -bash", Ok("read edit write grep find ls"));
        check("*r*", Ok("read write grep"));
        check("zzz*", Ok(""));
    }

    #[test]
    fn names_of_tools_of_the_original_are_no_errors() {
        check("read codemode -powershell", Ok("read"));
        check("reed", Err("reed"));
        check("-bsh", Err("bsh"));
        check("+", Err(""));
    }

    #[test]
    fn unknown_entries_leave_the_selection_of_the_others() {
        let check = |list: &str, expected: &str, wrong: &[&str]| {
            let list: Vec<String> = list.split_whitespace().map(str::to_owned).collect();
            let found = select(&list);
            let unknown: Vec<&str> = found.unknown.iter().map(|unknown| unknown.name.as_str()).collect();
            assert_eq!((found.names.join(" ").as_str(), &*unknown), (expected, wrong), "{list:?}");
        };
        check("raed bash", "bash", &["raed"]);
        check("raed", "", &["raed"]);
        check("raed +grep -lss", "grep", &["raed", "lss"]);
        check("-bsah +ls", "read bash edit write ls", &["bsah"]);
    }
}

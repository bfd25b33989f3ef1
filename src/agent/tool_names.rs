//! Finds the tool that a model means by a name in another case, or with decoration that models
//! and gateways add.

use std::sync::Arc;

use crate::ai::{AssistantBlock, AssistantMessage};

use super::tool::{Tool, ToolError, ToolRegistry};

/// Namespaces that models put before names: those of prompts that other services use.
const NAMESPACES: &[&str] = &["functions", "function", "tools", "tool", "default_api", "api", "proxy"];

/// The tool called `name`, else the only one whose name is equal without case and decoration.
pub(super) fn find<'a>(tools: &'a ToolRegistry, name: &str) -> Option<&'a Arc<dyn Tool>> {
    let exact = tools.get(name);
    if exact.is_some() {
        return exact;
    }
    let undecorated = undecorated(name);
    let mut bare = undecorated.as_str();
    loop {
        let mut alike = tools.iter().filter(|tool| tool.spec().name.eq_ignore_ascii_case(bare));
        match alike.next() {
            Some(found) => return alike.next().is_none().then_some(found),
            None => bare = without_namespace(bare)?,
        }
    }
}

/// Gives the calls of `answer` the real names of their tools, so that the session stores, shows
/// and sends names that exist.
pub(super) fn use_real_names(answer: &mut AssistantMessage, tools: &ToolRegistry) {
    for block in &mut answer.content {
        if let AssistantBlock::ToolCall(call) = block
            && let Some(tool) = find(tools, &call.name)
            && tool.spec().name != call.name
        {
            call.name.clone_from(&tool.spec().name);
        }
    }
}

/// The error that the model reads about a name that no tool has.
pub(super) fn not_found(tools: &ToolRegistry, name: &str) -> ToolError {
    let names: Vec<&str> = tools.iter().map(|tool| tool.spec().name.as_str()).collect();
    let available = match names.as_slice() {
        [] => "There are no tools".to_owned(),
        names => format!("Available tools: {}", names.join(", ")),
    };
    ToolError::new(match name.trim() {
        "" => format!("The call names no tool. {available}"),
        name => format!("Tool {name} not found. {available}"),
    })
}

/// `name` without special tokens, parentheses and numbers around it.
fn undecorated(name: &str) -> String {
    let unescaped = name.replace('\\', "");
    // `<|channel|>commentary to=functions.read` addresses a tool.
    let addressed = unescaped.rsplit_once("to=").map_or(unescaped.as_str(), |(_, name)| name);
    let is_of_name = |c: char| c.is_ascii_alphanumeric() || "_-.:/".contains(c);
    let start = without_leading_tokens(addressed).trim_start_matches(|c| !is_of_name(c));
    let end = start.find(|c| !is_of_name(c)).unwrap_or(start.len());
    let name = start.get(..end).unwrap_or_default().trim_matches(['.', ':', '/', '-']);
    // The position of a call: `functions.read:0`.
    match name.rsplit_once([':', '.']) {
        Some((name, number)) if number.bytes().all(|byte| byte.is_ascii_digit()) => name.to_owned(),
        Some(_) | None => name.to_owned(),
    }
}

fn without_leading_tokens(name: &str) -> &str {
    let mut rest = name.trim_start();
    while let Some((_, after)) = rest.strip_prefix('<').and_then(|rest| rest.split_once('>')) {
        rest = after.trim_start();
    }
    rest
}

fn without_namespace(name: &str) -> Option<&str> {
    const SEPARATORS: [char; 5] = ['.', ':', '/', '_', '-'];
    NAMESPACES.iter().find_map(|namespace| {
        let (first, rest) = name.split_at_checked(namespace.len())?;
        let is_namespace = first.eq_ignore_ascii_case(namespace) && rest.starts_with(SEPARATORS);
        let rest = rest.trim_start_matches(SEPARATORS);
        (is_namespace && !rest.is_empty()).then_some(rest)
    })
}

#[cfg(test)]
mod tests {
    use futures_util::future::BoxFuture;
    use serde_json::{Value, json};

    use super::*;
    use crate::agent::tool::{ToolCx, ToolOutput, ToolSpec};

    struct Named(ToolSpec);

    impl Tool for Named {
        fn spec(&self) -> &ToolSpec {
            &self.0
        }

        fn run<'a>(&'a self, _: Value, _: ToolCx<'a>) -> BoxFuture<'a, Result<ToolOutput, ToolError>> {
            Box::pin(std::future::ready(Ok(ToolOutput::default())))
        }
    }

    fn registry(names: &[&str]) -> ToolRegistry {
        let tool = |name: &&str| -> Arc<dyn Tool> {
            Arc::new(Named(ToolSpec::new(*name, "", json!({ "type": "object" }))))
        };
        ToolRegistry::new(names.iter().map(tool).collect())
    }

    #[track_caller]
    fn check(names: &[&str], asked: &str, expected: Option<&str>) {
        let tools = registry(names);
        let found = find(&tools, asked).map(|tool| tool.spec().name.as_str());
        assert_eq!(found, expected, "{asked:?} among {names:?}");
    }

    #[test]
    fn decorated_name_finds_its_tool() {
        let tools = ["read", "bash", "web_search", "mcp__files__read"];
        for asked in [
            "Read",
            "READ",
            "read ",
            " read\n",
            "read<|channel|>commentary",
            "read<|im_end|>",
            "read<｜tool▁sep｜>",
            "<|tool|>read",
            "<|channel|>commentary to=functions.read",
            "functions.read",
            "functions.Read",
            "functions.read:0",
            "functions:read",
            "functions_read",
            "tools.read",
            "tool/read",
            "default_api.read",
            "default_api:read",
            "proxy_Read",
            "read()",
            "read(path)",
            "read:",
            "`read`",
            "\"read\"",
            "read\u{200b}",
        ] {
            check(&tools, asked, Some("read"));
        }
        check(&["tool_search", "search"], "Tool_Search", Some("tool_search"));
        check(&tools, "Web\\_Search", Some("web_search"));
        check(&tools, "MCP__files__read", Some("mcp__files__read"));
    }

    #[test]
    fn exact_name_wins_and_ambiguous_names_find_nothing() {
        check(&["Read", "read"], "read", Some("read"));
        check(&["Read", "read"], "READ", None);
        check(&["functions_read", "read"], "functions_read", Some("functions_read"));
        for asked in ["", " ", "()", "<|x|>", "functions", "reader", "re", "read_file", "files.read"] {
            check(&["read", "bash"], asked, None);
        }
    }

    #[test]
    fn error_lists_the_tools() {
        let check = |names: &[&str], asked: &str, expected: &str| {
            assert_eq!(not_found(&registry(names), asked).0, expected);
        };
        check(&["read", "bash"], "grep ", "Tool grep not found. Available tools: read, bash");
        check(&["read"], " ", "The call names no tool. Available tools: read");
        check(&[], "read", "Tool read not found. There are no tools");
    }
}

//! The system prompt as named sections, and its changes.
//!
//! Sections do not contain the time or anything else that changes by itself, so
//! that prompts stay in the providers' caches.

use std::path::Path;
use std::sync::Arc;

use serde_json::{Map, Value};

use crate::agent::{Tool, ToolRegistry, ToolSpec};
use crate::ai::{Extra, Millis, RemovedTool, SystemContent, SystemMessage, SystemState, ToolDeclaration};

use super::agents_md::ContextFile;
use super::skills::{self, Skill};

/// The inputs of the system prompt.
#[derive(Default)]
pub(crate) struct PromptParts<'a> {
    /// Replaces the preamble, the tool list and the rules.
    pub(crate) custom: Option<&'a str>,
    /// Added after the rules.
    pub(crate) addendum: Option<&'a str>,
    /// Prints pages about pi.
    pub(crate) docs_command: Option<&'a str>,
    pub(crate) context_files: &'a [ContextFile],
    /// Listed if the model has a tool that can read them.
    pub(crate) skills: &'a [Skill],
}

const PREAMBLE: &str = "You are a coding assistant working in pi, a terminal program, on the user's own machine. You \
help by reading files, running commands, and changing code.";

/// The sections of the system prompt, in order.
pub(crate) fn sections(parts: &PromptParts<'_>, tools: &ToolRegistry, cwd: &Path) -> Vec<(String, String)> {
    let mut sections = Vec::new();
    let mut add = |name: &str, text: String| {
        let text = if name == "preamble" { text } else { format!("<{name}>\n{text}\n</{name}>") };
        sections.push((name.to_owned(), text));
    };
    match parts.custom {
        Some(custom) => add("preamble", custom.to_owned()),
        None => {
            add("preamble", PREAMBLE.to_owned());
            add("tools", tool_list(tools));
            add("rules", rules(tools));
            if let Some(command) = parts.docs_command.filter(|_| tools.get("bash").is_some()) {
                add("docs", docs(command));
            }
        }
    }
    if let Some(addendum) = parts.addendum {
        add("addendum", addendum.to_owned());
    }
    if !parts.context_files.is_empty() {
        add("project_context", project_context(parts.context_files));
    }
    let has = |name: &str| tools.get(name).is_some();
    if (has("read") || has("bash"))
        && let Some(text) = skills::section(parts.skills, has("read"))
    {
        add("skills", text);
    }
    add("cwd", cwd.to_string_lossy().replace('\\', "/"));
    sections
}

fn tool_list(tools: &ToolRegistry) -> String {
    let line = |tool: &Arc<dyn Tool>| {
        let ToolSpec { name, snippet, .. } = tool.spec();
        snippet.as_ref().map(|snippet| format!("- {name}: {snippet}"))
    };
    let mut lines: Vec<String> = tools.iter().filter_map(line).collect();
    if lines.is_empty() {
        lines.push("(none)".to_owned());
    }
    lines.push("Other tools may be available besides these.".to_owned());
    lines.join("\n")
}

fn rules(tools: &ToolRegistry) -> String {
    let has = |name: &str| tools.get(name).is_some();
    let mut rules: Vec<&str> = Vec::new();
    if has("bash") && !has("grep") && !has("find") && !has("ls") {
        rules.push("List, find and search files with bash: ls, rg or grep, find");
    }
    for tool in tools.iter() {
        for guideline in &tool.spec().guidelines {
            if !rules.contains(&guideline.as_str()) {
                rules.push(guideline);
            }
        }
    }
    rules.push("Be concise");
    rules.push("Name files by their path");
    rules.iter().map(|rule| format!("- {rule}")).collect::<Vec<_>>().join("\n")
}

fn docs(command: &str) -> String {
    format!(
        "`{command}` lists pages about pi itself; `{command} --search WORDS` and `{command} PAGE` print them. Run it \
         only when the user asks about pi."
    )
}

fn project_context(files: &[ContextFile]) -> String {
    let mut parts = vec!["Instructions of this project and its user:".to_owned()];
    for file in files {
        let path = file.path.display();
        parts.push(format!("<project_instructions path=\"{path}\">\n{}\n</project_instructions>", file.text));
    }
    parts.join("\n\n")
}

/// The system message that updates the transcript's state `said` to the wanted
/// state. `None` if nothing changed.
pub(crate) fn delta(
    said: &SystemState,
    wanted: &[(String, String)],
    tools: &[ToolDeclaration],
    now_ms: u64,
) -> Option<SystemMessage> {
    let mut sections = Map::new();
    for (name, text) in wanted {
        if !said.sections.iter().any(|(said_name, said_text)| said_name == name && said_text == text) {
            sections.insert(name.clone(), Value::from(text.as_str()));
        }
    }
    for (name, _) in said.sections.iter().filter(|(name, _)| wanted.iter().all(|(wanted, _)| wanted != name))
    {
        sections.insert(name.clone(), Value::Null);
    }
    let known = |name: &str| said.tools.iter().find(|tool| tool.name == name);
    let tools_added: Vec<ToolDeclaration> =
        tools.iter().filter(|tool| known(&tool.name) != Some(tool)).cloned().collect();
    let tools_removed: Vec<RemovedTool> = said
        .tools
        .iter()
        .filter(|old| tools.iter().all(|tool| tool.name != old.name))
        .map(|old| RemovedTool { name: old.name.clone(), extra: Extra::new() })
        .collect();
    if sections.is_empty() && tools_added.is_empty() && tools_removed.is_empty() {
        return None;
    }
    Some(SystemMessage {
        content: SystemContent::default(),
        sections: (!sections.is_empty()).then_some(sections),
        timestamp: Millis(now_ms),
        tools_added,
        tools_removed,
        extra: Extra::new(),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn wanted(sections: &[(&str, &str)]) -> Vec<(String, String)> {
        sections.iter().map(|(name, text)| ((*name).to_owned(), (*text).to_owned())).collect()
    }

    fn tool(name: &str) -> ToolDeclaration {
        ToolDeclaration {
            name: name.to_owned(),
            description: String::new(),
            parameters: Value::Null,
            constrained_sampling: None,
            extra: Extra::new(),
        }
    }

    #[test]
    fn only_what_changed_is_said() {
        let said = SystemState {
            contents: Vec::new(),
            sections: wanted(&[("preamble", "P"), ("old", "O"), ("cwd", "/a")]),
            tools: vec![tool("read"), tool("bash")],
        };
        let now = wanted(&[("preamble", "P"), ("cwd", "/b")]);
        let delta = delta(&said, &now, &[tool("read"), tool("grep")], 7).unwrap();
        let json = serde_json::to_value(&delta).unwrap();
        let expected = serde_json::json!({
            "content": "", "sections": {"cwd": "/b", "old": null}, "timestamp": 7,
            "toolsAdded": [{"name": "grep", "description": "", "parameters": null}],
            "toolsRemoved": [{"name": "bash"}],
        });
        assert_eq!(json, expected);
    }

    #[test]
    fn an_unchanged_prompt_says_nothing() {
        let sections = wanted(&[("preamble", "P")]);
        let said =
            SystemState { contents: Vec::new(), sections: sections.clone(), tools: vec![tool("read")] };
        assert_eq!(delta(&said, &sections, &[tool("read")], 0), None);
    }

    struct Described(ToolSpec);

    impl Tool for Described {
        fn spec(&self) -> &ToolSpec {
            &self.0
        }

        fn run<'a>(
            &'a self,
            _arguments: Value,
            _cx: crate::agent::ToolCx<'a>,
        ) -> futures_util::future::BoxFuture<'a, Result<crate::agent::ToolOutput, crate::agent::ToolError>>
        {
            Box::pin(async { Ok(crate::agent::ToolOutput::default()) })
        }
    }

    #[test]
    fn tools_with_a_snippet_are_listed_and_all_bring_their_rules() {
        let tool = |name: &str, snippet: Option<&str>| -> Arc<dyn Tool> {
            Arc::new(Described(ToolSpec {
                name: name.to_owned(),
                description: String::new(),
                snippet: snippet.map(str::to_owned),
                guidelines: vec![format!("Use {name} well")],
                parameters: Value::Null,
                constrained_sampling: None,
            }))
        };
        let mut tools = ToolRegistry::new(vec![tool("shown", Some("Does it")), tool("quiet", None)]);
        assert_eq!(tool_list(&tools), "- shown: Does it\nOther tools may be available besides these.");
        assert!(rules(&tools).contains("- Use shown well\n- Use quiet well\n"));
        tools.add(tool("shown", Some("Does more")));
        assert!(tools.remove("quiet") && !tools.remove("quiet"));
        assert_eq!(tool_list(&tools), "- shown: Does more\nOther tools may be available besides these.");
        assert!(!rules(&tools).contains("quiet"));
    }

    #[test]
    fn a_custom_prompt_replaces_preamble_tools_and_rules() {
        let files = [ContextFile { path: "/p/AGENTS.md".into(), text: "Use tabs.".to_owned() }];
        let parts = PromptParts {
            custom: Some("Be a pirate."),
            addendum: Some("Arr."),
            docs_command: Some("pi docs"),
            context_files: &files,
            skills: &[],
        };
        let sections = sections(&parts, &ToolRegistry::default(), Path::new("/p"));
        let text: Vec<String> = sections.into_iter().map(|(_, text)| text).collect();
        let expected = "Be a pirate.\n\n<addendum>\nArr.\n</addendum>\n\n<project_context>\nInstructions of this \
            project and its user:\n\n<project_instructions path=\"/p/AGENTS.md\">\nUse tabs.\n\
            </project_instructions>\n</project_context>\n\n<cwd>\n/p\n</cwd>";
        assert_eq!(text.join("\n\n"), expected);
    }
}

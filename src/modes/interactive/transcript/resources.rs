//! Lists of what a session has loaded: names, or paths by where they come from.

use std::path::PathBuf;

use crate::session::ResourceOrigin;
use crate::tui::text::{Row, Run, Wrap, visible_name};
use crate::tui::theme::Token;

use super::render::RenderCx;

/// Everything of one kind.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(in super::super) struct ResourceSection {
    pub(in super::super) title: &'static str,
    pub(in super::super) resources: Vec<Resource>,
}

/// One file that was loaded.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(in super::super) struct Resource {
    /// `None` if it has no name but its path.
    pub(in super::super) name: Option<String>,
    pub(in super::super) origin: ResourceOrigin,
    pub(in super::super) path: PathBuf,
}

/// In the order in which they are listed.
const ORIGINS: [(ResourceOrigin, &str); 3] = [
    (ResourceOrigin::User, "user"),
    (ResourceOrigin::Project, "project"),
    (ResourceOrigin::CommandLine, "command line"),
];

/// Draws sections: one line of names each, or all paths.
pub(super) fn rows(sections: &[ResourceSection], cx: &RenderCx<'_>) -> Vec<Row> {
    let of_section = |section| if cx.view.expanded { paths(section, cx) } else { names(section, cx) };
    sections.iter().flat_map(of_section).collect()
}

/// All names and paths, for a search.
pub(super) fn text(sections: &[ResourceSection]) -> String {
    let line = |resource: &Resource| {
        format!("{} {}", resource.name.as_deref().unwrap_or_default(), resource.path.display())
    };
    let section = |section: &ResourceSection| {
        let lines: Vec<String> = section.resources.iter().map(line).collect();
        format!("[{}]\n{}", section.title, lines.join("\n"))
    };
    sections.iter().map(section).collect::<Vec<_>>().join("\n")
}

fn title(section: &ResourceSection, cx: &RenderCx<'_>) -> Run {
    Run::new(format!("[{}]", section.title), cx.style(Token::Muted))
}

fn names(section: &ResourceSection, cx: &RenderCx<'_>) -> Vec<Row> {
    let name = |resource: &Resource| match &resource.name {
        Some(name) => visible_name(name).into_owned(),
        None => path(resource, cx).text,
    };
    let names: Vec<String> = section.resources.iter().map(name).collect();
    let dim = cx.style(Token::Dim);
    let runs = [title(section, cx), Run::new(format!(" {}", names.join(", ")), dim)];
    Wrap::new(cx.width).rest("  ", dim).runs(&runs)
}

fn paths(section: &ResourceSection, cx: &RenderCx<'_>) -> Vec<Row> {
    let dim = cx.style(Token::Dim);
    let mut rows = Wrap::new(cx.width).runs(&[title(section, cx)]);
    for (origin, label) in ORIGINS {
        let mut found = section.resources.iter().filter(|resource| resource.origin == origin).peekable();
        if found.peek().is_some() {
            rows.extend(Wrap::new(cx.width).first("  ", dim).text(label, cx.style(Token::Muted)));
        }
        let wrap = Wrap::new(cx.width).first("    ", dim).rest("    ", dim);
        rows.extend(found.flat_map(|resource| wrap.runs(&[path(resource, cx)])));
    }
    rows
}

fn path(resource: &Resource, cx: &RenderCx<'_>) -> Run {
    cx.path(&resource.path.to_string_lossy(), cx.style(Token::Dim))
}

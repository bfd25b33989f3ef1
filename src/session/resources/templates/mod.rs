//! Prompt templates: Markdown files whose text replaces `/NAME ARGUMENTS` in a message.
//!
//! [`load`] reads the heads of the files in order of precedence: of two templates with
//! the same name, the first one wins. [`expand`] reads the whole file when it is called;
//! `arguments` splits the arguments and replaces the placeholders. A problem of a
//! template is a [`TemplateProblem`], never an error.

mod arguments;

use std::collections::{BTreeMap, HashSet};
use std::fs::{self, Metadata};
use std::io::{self, Read as _};
use std::path::{Path, PathBuf};

use serde::Deserialize;

use crate::util::os::{self, FileId};
use crate::util::{parts, paths};

use super::filter::Filter;
use super::frontmatter::{self, FILES_PER_THREAD, Frontmatter, FrontmatterProblem, MisspeltField, one_line};
use super::text::{InvalidText, decode};
use super::{ResourceOrigin, ResourceProblems};

/// Maximum number of templates per session.
const MAX_TEMPLATES: usize = 500;
/// Maximum number of entries read of one folder.
const MAX_ENTRIES: usize = 5_000;
/// Maximum size of a template, in bytes.
const MAX_BYTES: u64 = 512 << 10;
/// Maximum length of a description taken from the text, in characters.
const MAX_FIRST_LINE: usize = 60;

/// A template that can be called.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PromptTemplate {
    /// The file's name without `.md`; contains no whitespace.
    pub name: String,
    /// One line; the beginning of the text if the file has no description.
    pub description: String,
    /// The arguments, for completion; empty if the file does not name them.
    pub argument_hint: String,
    /// Absolute.
    pub path: PathBuf,
    /// Where it comes from.
    pub origin: ResourceOrigin,
}

/// The locations of templates.
#[derive(Debug, Clone, Copy)]
pub(crate) struct TemplatePlaces<'a> {
    pub(crate) agent: &'a Path,
    pub(crate) home: Option<&'a Path>,
    pub(crate) cwd: &'a Path,
    /// The user's setting `prompts`.
    pub(crate) settings: &'a [String],
    /// The project's setting `prompts`; used only with `with_project`.
    pub(crate) project_settings: &'a [String],
    /// Paths from the command line; absolute.
    pub(crate) named: &'a [PathBuf],
    /// Whether to search only the paths from the command line.
    pub(crate) only_named: bool,
    /// Whether the project is trusted.
    pub(crate) with_project: bool,
}

/// A problem of a template, for its author or user.
#[derive(Debug, thiserror::Error)]
pub(crate) enum TemplateProblem {
    #[error("prompt templates: {} does not exist", path.display())]
    Missing { path: PathBuf },
    #[error("prompt templates: cannot read {}: {source}", path.display())]
    Unreadable { path: PathBuf, source: io::Error },
    #[error("{}: the prompt template is not loaded: {}", problem.place(path), problem.cause)]
    Malformed { path: PathBuf, problem: FrontmatterProblem },
    #[error("two prompt templates are named \"{name}\"; using {}, ignoring {}", kept.display(), dropped.display())]
    Collision { name: String, kept: PathBuf, dropped: PathBuf },
    #[error("setting \"prompts\": {cause}")]
    Pattern { cause: String },
    #[error("prompt templates: {} contains more than {MAX_ENTRIES} files and directories; the rest is not loaded", folder.display())]
    TooManyEntries { folder: PathBuf },
    #[error("prompt templates: more than {MAX_TEMPLATES} found; {} and others are not loaded", path.display())]
    TooManyTemplates { path: PathBuf },
    #[error("prompt template {}: {text} is no placeholder and is sent as it is; placeholders are $1, ${{1:-default}}, $@, ${{@:2}} and $ARGUMENTS", path.display())]
    NoPlaceholder { path: PathBuf, text: String },
    #[error("{}:{}: {invalid}", path.display(), invalid.line)]
    NotUtf8 { path: PathBuf, invalid: InvalidText },
    #[error("{}:{}: \"{}\" is no field of prompt templates; did you mean \"{}\"?", path.display(), field.line, field.field, field.meant)]
    Misspelt { path: PathBuf, field: MisspeltField },
}

/// Why a template could not be put into a message.
#[derive(Debug, thiserror::Error)]
pub(crate) enum TemplateError {
    #[error("cannot read the prompt template \"{name}\": {}: {source}", path.display())]
    Unreadable { name: String, path: PathBuf, source: io::Error },
    #[error("the prompt template \"{name}\" is longer than {} KiB: {}", MAX_BYTES >> 10, path.display())]
    TooLong { name: String, path: PathBuf },
    #[error("the prompt template \"{name}\" is not valid: {}: {}", problem.place(path), problem.cause)]
    Malformed { name: String, path: PathBuf, problem: FrontmatterProblem },
    #[error("the prompt template \"{name}\" is empty with these arguments: {}", path.display())]
    Empty { name: String, path: PathBuf },
    #[error("the prompt template \"{name}\" with these arguments is longer than {} MiB", arguments::MAX_EXPANDED_BYTES >> 20)]
    Expanded { name: String },
}

/// Finds the templates, sorted by name. Bounded in files and bytes. Blocks.
pub(crate) fn load(places: &TemplatePlaces<'_>) -> (Vec<PromptTemplate>, ResourceProblems<TemplateProblem>) {
    let mut set = TemplateSet::default();
    if !places.only_named {
        set.add_layer(
            &places.agent.join("prompts"),
            places.settings,
            places.agent,
            places.home,
            ResourceOrigin::User,
        );
        if places.with_project {
            let folder = places.cwd.join(".pi");
            let (prompts, origin) = (folder.join("prompts"), ResourceOrigin::Project);
            set.add_layer(&prompts, places.project_settings, &folder, places.home, origin);
        }
    }
    let others = std::mem::take(&mut set.problems);
    for path in places.named {
        let files = set.files_at(path);
        set.add(files, ResourceOrigin::CommandLine);
    }
    (set.by_name.into_values().collect(), ResourceProblems { of_flags: set.problems, others })
}

#[derive(Debug, Default)]
struct TemplateSet {
    by_name: BTreeMap<String, PromptTemplate>,
    /// The files visited.
    seen: HashSet<FileId>,
    problems: Vec<TemplateProblem>,
}

/// A file that may be a template.
struct Found {
    path: PathBuf,
    /// The same for all links to the file.
    file: FileId,
}

impl TemplateSet {
    /// Adds the templates of a folder and of the setting `prompts` beside it. Relative paths
    /// in `settings` start in `base`.
    fn add_layer(
        &mut self,
        folder: &Path,
        settings: &[String],
        base: &Path,
        home: Option<&Path>,
        origin: ResourceOrigin,
    ) {
        let mut files = if folder.is_dir() { self.files_at(folder) } else { Vec::new() };
        let (filter, plain, problems) = Filter::new(settings, base, home);
        self.problems.extend(problems.into_iter().map(|cause| TemplateProblem::Pattern { cause }));
        for path in &plain {
            files.extend(self.files_at(path));
        }
        files.retain(|found| filter.keeps(&found.path));
        self.add(files, origin);
    }

    /// The file at `path`, or the Markdown files directly in the folder there.
    fn files_at(&mut self, path: &Path) -> Vec<Found> {
        match fs::metadata(path) {
            Ok(metadata) if metadata.is_file() => {
                vec![Found { path: path.to_owned(), file: os::file_id(&metadata) }]
            }
            Ok(metadata) if metadata.is_dir() => self.files_in(path),
            _ => {
                self.problems.push(TemplateProblem::Missing { path: path.to_owned() });
                Vec::new()
            }
        }
    }

    fn files_in(&mut self, folder: &Path) -> Vec<Found> {
        let entries = match fs::read_dir(folder) {
            Ok(entries) => entries,
            Err(source) => {
                self.problems.push(TemplateProblem::Unreadable { path: folder.to_owned(), source });
                return Vec::new();
            }
        };
        let mut paths: Vec<PathBuf> =
            entries.flatten().take(MAX_ENTRIES + 1).map(|entry| entry.path()).collect();
        if paths.len() > MAX_ENTRIES {
            self.problems.push(TemplateProblem::TooManyEntries { folder: folder.to_owned() });
            paths.truncate(MAX_ENTRIES);
        }
        // Folders list their entries in arbitrary order.
        paths.sort();
        paths.retain(|path| is_markdown(path));
        let files = paths.into_iter().filter_map(|path| {
            let metadata = fs::metadata(&path).ok().filter(Metadata::is_file)?;
            Some(Found { path, file: os::file_id(&metadata) })
        });
        files.collect()
    }

    fn add(&mut self, files: Vec<Found>, origin: ResourceOrigin) {
        let mut files = files;
        files.retain(|found| self.seen.insert(found.file));
        let n_threads = parts::threads_for(files.len(), FILES_PER_THREAD);
        let read = parts::in_parts(&files, n_threads, &|_| 1, &|files| {
            files.iter().map(|found| read_template(paths::normalise(&found.path), origin)).collect()
        });
        for (Found { path, .. }, template) in files.into_iter().zip(read) {
            if self.by_name.len() == MAX_TEMPLATES {
                return self.problems.push(TemplateProblem::TooManyTemplates { path });
            }
            match template {
                Ok((template, problems)) => {
                    self.problems.extend(problems);
                    self.add_one(template);
                }
                Err(problem) => self.problems.push(problem),
            }
        }
    }

    fn add_one(&mut self, template: PromptTemplate) {
        if let Some(kept) = self.by_name.get(&template.name) {
            let (kept, dropped) = (kept.path.clone(), template.path);
            self.problems.push(TemplateProblem::Collision { name: template.name, kept, dropped });
        } else {
            self.by_name.insert(template.name.clone(), template);
        }
    }
}

fn is_markdown(path: &Path) -> bool {
    let name = path.file_name().unwrap_or_default().as_encoded_bytes();
    let is_hidden = name.starts_with(b".");
    !is_hidden && path.extension().is_some_and(|ending| ending.eq_ignore_ascii_case("md"))
}

/// Reads the head of a file; also returns problems that leave the template usable.
fn read_template(
    path: PathBuf,
    origin: ResourceOrigin,
) -> Result<(PromptTemplate, Vec<TemplateProblem>), TemplateProblem> {
    let name = path.file_stem().unwrap_or_default().to_string_lossy().into_owned();
    let malformed = |path: PathBuf, problem| TemplateProblem::Malformed { path, problem };
    if name.contains(char::is_whitespace) {
        let cause = "its name contains a space, so no command can call it; rename the file";
        return Err(malformed(path, FrontmatterProblem::of_file(cause)));
    }
    let (head, invalid) = match frontmatter::read_head(&path) {
        Ok(head) => head,
        Err(source) => return Err(TemplateProblem::Unreadable { path, source }),
    };
    let mut problems: Vec<TemplateProblem> =
        invalid.map(|invalid| TemplateProblem::NotUtf8 { path: path.clone(), invalid }).into_iter().collect();
    let (fields, body) = match frontmatter::split(&head) {
        Frontmatter::None(body) => (Fields::default(), body),
        Frontmatter::Unclosed => return Err(malformed(path, FrontmatterProblem::unclosed())),
        Frontmatter::Some { yaml, body } => match Fields::parse(yaml) {
            Ok(fields) => {
                let wrong = frontmatter::misspelt(yaml, FIELDS, OTHER_FIELDS).into_iter();
                problems.extend(wrong.map(|field| TemplateProblem::Misspelt { path: path.clone(), field }));
                (fields, body)
            }
            Err(problem) => return Err(malformed(path, problem)),
        },
    };
    let description = fields.description.unwrap_or_else(|| first_line(body));
    let argument_hint = fields.argument_hint.unwrap_or_default();
    Ok((PromptTemplate { name, description, argument_hint, path, origin }, problems))
}

/// The fields that pi reads.
const FIELDS: &[&str] = &["description", "argument-hint"];
/// Fields that other programs read, and that are spelt alike.
const OTHER_FIELDS: &[&str] = &["arguments"];

/// The first line of `body` that is not empty, at most [`MAX_FIRST_LINE`] characters.
fn first_line(body: &str) -> String {
    let line = body.lines().map(one_line).find(|line| !line.is_empty()).unwrap_or_default();
    match line.char_indices().nth(MAX_FIRST_LINE) {
        Some((end, _)) => format!("{}...", &line[..end]),
        None => line,
    }
}

/// The fields that pi uses. Texts are one line, and `None` if empty.
#[derive(Debug, Default, PartialEq, Eq)]
struct Fields {
    description: Option<String>,
    argument_hint: Option<String>,
}

/// The fields as written; unknown fields are skipped.
#[derive(Default, Deserialize)]
#[serde(expecting = "fields such as description: TEXT")]
struct Written {
    description: Option<String>,
    #[serde(rename = "argument-hint")]
    argument_hint: Option<Hint>,
}

/// `[file]` without quotes is a list in YAML.
#[derive(Deserialize)]
#[serde(untagged, expecting = "argument-hint is neither text nor a list of texts")]
enum Hint {
    Text(String),
    List(Vec<String>),
}

impl Fields {
    /// Reads the YAML of a frontmatter.
    ///
    /// # Errors
    /// Describes the problem and its line.
    fn parse(yaml: &str) -> Result<Self, FrontmatterProblem> {
        let written = frontmatter::fields::<Written>(yaml).map_err(|mut problem| {
            if yaml.contains("argument-hint: [") {
                problem.cause.push_str("; put the argument-hint in quotes");
            }
            problem
        })?;
        let written = written.unwrap_or_default();
        let hint = written.argument_hint.map(|hint| match hint {
            Hint::Text(text) => text,
            Hint::List(items) => format!("[{}]", items.join(", ")),
        });
        let text = |field: Option<String>| field.map(|text| one_line(&text)).filter(|text| !text.is_empty());
        Ok(Self { description: text(written.description), argument_hint: text(hint) })
    }
}

/// The template that `text` calls, and the rest of the text; `None` for any other text.
pub(crate) fn call<'t, 'a>(
    text: &'a str,
    templates: &'t [PromptTemplate],
) -> Option<(&'t PromptTemplate, &'a str)> {
    let rest = text.trim_start().strip_prefix('/')?;
    let (name, args) = rest.split_at(rest.find(char::is_whitespace).unwrap_or(rest.len()));
    let template = templates.iter().find(|template| template.name == name)?;
    Some((template, args))
}

/// The message for `template` called with `args`, and what its author should know. Reads the
/// file; blocks.
///
/// # Errors
/// If the file can no longer be used, or the message would be empty or too long.
pub(crate) fn expand(
    template: &PromptTemplate,
    args: &str,
) -> Result<(String, Vec<TemplateProblem>), TemplateError> {
    let (name, path) = (template.name.clone(), template.path.clone());
    let (text, invalid) = read(template)?;
    let body = match frontmatter::split(&text) {
        Frontmatter::Some { body, .. } | Frontmatter::None(body) => body,
        Frontmatter::Unclosed => {
            return Err(TemplateError::Malformed { name, path, problem: FrontmatterProblem::unclosed() });
        }
    };
    let body = body.trim().replace("\r\n", "\n");
    let expanded = arguments::apply(&body, args).ok_or(TemplateError::Expanded { name: name.clone() })?;
    if expanded.trim().is_empty() {
        return Err(TemplateError::Empty { name, path });
    }
    let mistaken = arguments::mistaken(&body)
        .map(|text| TemplateProblem::NoPlaceholder { path: path.clone(), text: one_line(text) });
    let invalid = invalid.map(|invalid| TemplateProblem::NotUtf8 { path, invalid });
    Ok((expanded, mistaken.into_iter().chain(invalid).collect()))
}

/// The text of the file, and where it is not UTF-8.
fn read(template: &PromptTemplate) -> Result<(String, Option<InvalidText>), TemplateError> {
    let (name, path) = (template.name.clone(), template.path.clone());
    let mut bytes = Vec::new();
    let read = os::open_regular(&path).and_then(|file| file.take(MAX_BYTES + 1).read_to_end(&mut bytes));
    match read {
        Err(source) => Err(TemplateError::Unreadable { name, path, source }),
        Ok(n_bytes) if n_bytes as u64 > MAX_BYTES => Err(TemplateError::TooLong { name, path }),
        Ok(_) => {
            let (text, invalid) = decode(&bytes, false);
            Ok((text.into_owned(), invalid))
        }
    }
}

#[cfg(test)]
mod tests;

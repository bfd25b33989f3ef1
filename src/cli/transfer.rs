//! `pi import` and `pi export`: conversations in the request formats of other programs, and
//! sessions as files for people.

use std::ffi::OsString;
use std::io::Read as _;
use std::path::{Path, PathBuf};
use std::process::ExitCode;

use anyhow::Context;
use clap::builder::{PossibleValue, TypedValueParser as _};
use clap::{Parser, ValueEnum};

use crate::ai::foreign::{self, Format, ImportError};
use crate::config::Env;
use crate::modes::{self, ExistingFile, ExportFormat, ExportSource, UsageError};
use crate::session::{self, OpenSession, Secrets, StoredTree};
use crate::util::atomic_file;
use crate::util::clock::Clock;
use crate::util::os;

use super::args::Args;
use super::reference::Suggested;
use super::sessions;
use super::start::Setup;

/// Turn a conversation in a provider's request format into a session.
#[derive(Debug, Clone, clap::Args)]
pub(super) struct ImportArgs {
    /// Format of the conversation: openai (Chat Completions or Responses), anthropic or google
    #[arg(long, value_name = "FORMAT", value_parser = Suggested(formats).try_map(|name: String| parse_format(&name)), hide_possible_values = true)]
    from: Format,

    /// Request or messages as JSON or JSON lines; - reads standard input
    file: PathBuf,

    /// Name of the session
    #[arg(short, long, value_name = "NAME")]
    name: Option<String>,

    /// Directory for session files
    #[arg(long, value_name = "DIR")]
    session_dir: Option<PathBuf>,
}

/// Write a session as a web page, as Markdown, or in a provider's request format.
#[derive(Debug, Clone, clap::Args)]
pub(super) struct ExportArgs {
    /// Format to write: html, md, jsonl (a session file), atif (a trajectory), openai (Chat Completions), openai-responses, anthropic or google [default: by the extension of FILE]
    #[arg(long, value_name = "FORMAT", value_parser = Suggested(targets).try_map(|name: String| parse_target(&name)), hide_possible_values = true, required_unless_present_any = ["file", "output"])]
    to: Option<Target>,

    /// The session's file, id or start of its id
    session: String,

    /// File to write [default: standard output]
    file: Option<PathBuf>,

    /// The same as FILE
    #[arg(short, long, value_name = "FILE", conflicts_with = "file")]
    output: Option<PathBuf>,

    /// One request, or one message per line, in a provider's format
    #[arg(long, value_name = "FORM", value_enum, default_value_t = Form::Json)]
    format: Form,

    /// Replace keys, tokens and passwords by placeholders
    #[arg(long, conflicts_with = "keep_secrets")]
    redact: bool,

    /// Write html, md and jsonl even if they contain what looks like a secret
    #[arg(long)]
    keep_secrets: bool,

    /// Replace FILE if it exists
    #[arg(long)]
    force: bool,

    /// Directory for session files
    #[arg(long, value_name = "DIR")]
    session_dir: Option<PathBuf>,
}

/// Names for `--from`.
fn formats() -> Vec<PossibleValue> {
    Format::ALL.into_iter().map(|format| PossibleValue::new(format.name())).collect()
}

/// Names for `--to`.
fn targets() -> Vec<PossibleValue> {
    let sessions = ExportFormat::ALL.into_iter().map(|format| PossibleValue::new(format.name()));
    sessions.chain(formats()).collect()
}

/// What an export is for: people, or a service.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Target {
    Session(ExportFormat),
    Request(Format),
}

fn parse_target(name: &str) -> Result<Target, String> {
    let session = ExportFormat::parse(name).map(Target::Session);
    session.or_else(|| Format::parse(name).map(Target::Request)).ok_or_else(|| {
        let sessions = ExportFormat::ALL.into_iter().map(ExportFormat::name);
        let names: Vec<&str> = sessions.chain(Format::ALL.into_iter().map(Format::name)).collect();
        format!("expected one of {}", names.join(", "))
    })
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
enum Form {
    Json,
    Jsonl,
}

fn parse_format(name: &str) -> Result<Format, String> {
    let names: Vec<&str> = Format::ALL.into_iter().map(Format::name).collect();
    Format::parse(name).ok_or_else(|| format!("expected one of {}", names.join(", ")))
}

/// Longer conversations are not read.
const IMPORT_LIMIT_BYTES: u64 = 1 << 30;

/// Runs `pi import`.
pub(super) fn import(args: &ImportArgs, env: Env) -> anyhow::Result<ExitCode> {
    let general = general_args(None, args.session_dir.as_deref())?;
    let setup = Setup::reported(&general, env)?;
    let is_stdin = args.file.as_os_str() == "-";
    let shown = if is_stdin { "standard input".to_owned() } else { args.file.display().to_string() };
    let bytes = if is_stdin {
        let mut bytes = Vec::new();
        std::io::stdin().read_to_end(&mut bytes).map(|_| bytes)
    } else {
        os::read_regular(&args.file, IMPORT_LIMIT_BYTES)
    };
    let bytes = bytes.with_context(|| format!("cannot read {shown}"))?;
    let text = String::from_utf8(bytes).ok().with_context(|| format!("{shown} is not UTF-8 text"))?;
    let imported = foreign::import(args.from, &text)
        .map_err(|error| anyhow::anyhow!("cannot import {shown}: {error}{}", hint(&error)))?;
    let report = imported.report.clone();
    let folder = setup.folders(&general).folder;
    let saved = session::save_conversation(
        imported.into_messages(),
        args.name.as_deref(),
        &setup.cwd,
        &folder,
        Clock::system().now_ms(),
    )?;
    let resume = match &args.session_dir {
        None => format!("pi --session {}", saved.id),
        // In a custom folder, only the path finds it again.
        Some(_) => format!("pi --session {}", quoted(&saved.path)),
    };
    Ok(modes::show_import(&saved, &resume, &report))
}

/// The command for the format that the file seems to have.
fn hint(error: &ImportError) -> String {
    match error {
        ImportError::LooksLike { found, .. } if Format::parse(found).is_some() => {
            format!("; try --from {found}")
        }
        _ => String::new(),
    }
}

/// Runs `pi export`.
pub(super) fn export(args: &ExportArgs, env: Env) -> anyhow::Result<ExitCode> {
    let file = args.file.as_deref().or(args.output.as_deref());
    let by_name = || file.and_then(ExportFormat::of_file).map(Target::Session);
    let target = args.to.or_else(by_name).ok_or_else(|| {
        UsageError::new("the name of the file does not tell the format; end it in .html, .md or .jsonl, or use --to FORMAT")
    })?;
    if matches!(target, Target::Session(_)) && args.format == Form::Jsonl {
        anyhow::bail!(UsageError::new(
            "--format is for the formats of providers; use --to jsonl for a session file"
        ));
    }
    let general = general_args(Some(&args.session), args.session_dir.as_deref())?;
    let setup = Setup::reported(&general, env)?;
    let path = match sessions::choose(&general, &setup.folders(&general), &setup.cwd)? {
        OpenSession::File(path) => path,
        OpenSession::New | OpenSession::WithId(_) | OpenSession::Forked { .. } => {
            anyhow::bail!("no session given")
        }
    };
    if let Some(file) = file.filter(|file| file.exists() && !args.force) {
        anyhow::bail!("{} exists; use --force to overwrite it", file.display());
    }
    match target {
        Target::Session(format) => export_session(args, format, &path, file),
        Target::Request(format) => export_request(args, format, &path, file),
    }
}

/// Runs `pi --export SESSION [FILE]`, as the original has it.
pub(super) fn export_page(words: &[String], folder: Option<&Path>, env: Env) -> anyhow::Result<ExitCode> {
    let session = words.first().ok_or_else(|| UsageError::new("--export needs a session"))?;
    let base = Path::new(session).file_stem().unwrap_or_default().to_string_lossy();
    let file = words.get(1).cloned().unwrap_or_else(|| format!("pi-session-{base}.html"));
    let args = ExportArgs {
        to: Some(Target::Session(ExportFormat::Html)),
        session: session.clone(),
        file: Some(file.into()),
        output: None,
        format: Form::Json,
        redact: false,
        keep_secrets: false,
        force: false,
        session_dir: folder.map(Path::to_owned),
    };
    export(&args, env)
}

/// Writes a session for people, unless it contains secrets that nobody decided about.
fn export_session(
    args: &ExportArgs,
    format: ExportFormat,
    path: &Path,
    file: Option<&Path>,
) -> anyhow::Result<ExitCode> {
    let nothing = || format!("{} has nothing to export", path.display());
    let StoredTree { header, tree, name, damage } = session::read_tree(path)?.with_context(nothing)?;
    modes::report_notes(session::damage_notice(&damage).as_slice());
    if tree.is_empty() {
        anyhow::bail!(nothing());
    }
    let source = ExportSource { tree, header, name };
    if !args.redact {
        let secrets = source.secrets(format);
        modes::show_secrets(&secrets);
        if !secrets.is_empty() && !args.keep_secrets {
            anyhow::bail!(
                "nothing was exported, because {} places look like secrets; use --redact to mask them, or --keep-secrets",
                secrets.n_secrets()
            );
        }
    }
    let secrets = if args.redact { Secrets::Mask } else { Secrets::Keep };
    let now_ms = Clock::system().now_ms();
    let n_lost = match file {
        Some(file) => {
            let existing = if args.force { ExistingFile::Replace } else { ExistingFile::Keep };
            let written = source.write_file(format, secrets, now_ms, file, existing);
            written.with_context(|| format!("cannot write {}", file.display()))?
        }
        None => modes::write_export(|out| source.write(format, secrets, now_ms, out))?,
    };
    Ok(modes::show_session_export(file, n_lost))
}

/// Writes a request of the current branch.
fn export_request(
    args: &ExportArgs,
    format: Format,
    path: &Path,
    file: Option<&Path>,
) -> anyhow::Result<ExitCode> {
    let conversation = session::read_conversation(path)?;
    if conversation.messages.is_empty() {
        anyhow::bail!("{} has no messages to export", path.display());
    }
    let mut report = conversation.report;
    let exported = foreign::export(format, &conversation.messages);
    let text = match args.format {
        Form::Json => {
            report.append(exported.report);
            let mut body = exported.body;
            mask_or_report(args, &mut body);
            serde_json::to_string_pretty(&body)? + "\n"
        }
        Form::Jsonl => {
            let (mut lines, about_lines) = exported.into_lines();
            report.append(about_lines);
            lines.iter_mut().for_each(|line| mask_or_report(args, line));
            lines.iter().map(|line| line.to_string() + "\n").collect()
        }
    };
    let Some(file) = file else { return Ok(modes::show_export(&text, &report)) };
    atomic_file::write(file, text.as_bytes()).with_context(|| format!("cannot write {}", file.display()))?;
    Ok(modes::show_export_file(file, &report))
}

/// A request is for the service that has read the conversation already, so secrets in it are
/// only pointed out.
fn mask_or_report(args: &ExportArgs, body: &mut serde_json::Value) {
    if args.redact {
        session::mask_secrets_in(body);
    } else if !args.keep_secrets {
        modes::show_secret_kinds(&session::secrets_in(body));
    }
}

/// The arguments of pi itself that select the session.
pub(super) fn general_args(session: Option<&str>, folder: Option<&Path>) -> anyhow::Result<Args> {
    let mut words: Vec<OsString> = vec!["pi".into()];
    words.extend(session.map(|session| format!("--session={session}").into()));
    if let Some(folder) = folder {
        words.extend(["--session-dir".into(), folder.as_os_str().to_owned()]);
    }
    Ok(Args::try_parse_from(words)?)
}

/// `path` as one word of a shell.
fn quoted(path: &Path) -> String {
    let text = path.display().to_string();
    let is_plain = |c: char| c.is_alphanumeric() || "/._-+:@%".contains(c);
    if text.chars().all(is_plain) { text } else { format!("'{}'", text.replace('\'', r"'\''")) }
}

#[cfg(test)]
mod tests {
    use super::super::args;
    use super::*;

    #[test]
    fn wrong_arguments_are_errors() {
        let check = |command: &str, wrong: &[&str]| {
            let words = [&["pi", command], wrong].concat();
            assert!(args::parse(words.iter().map(Into::into).collect()).is_err(), "{words:?}");
        };
        for wrong in [&[][..], &["a.json"], &["--from", "openai"], &["--from", "cohere", "a.json"]] {
            check("import", wrong);
        }
        for wrong in [
            &["abc"][..],
            &["--to", "google"],
            &["--to", "google", "abc", "--format", "html"],
            &["abc", "a.md", "-o", "b.md"],
            &["abc", "a.md", "--redact", "--keep-secrets"],
        ] {
            check("export", wrong);
        }
    }

    #[test]
    fn paths_are_one_word_of_a_shell() {
        assert_eq!(quoted(Path::new("/a/b-c.jsonl")), "/a/b-c.jsonl");
        assert_eq!(quoted(Path::new("/a b/it's")), r"'/a b/it'\''s'");
    }
}

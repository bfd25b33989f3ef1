//! `pi import` and `pi export`: conversations in the request formats of other programs.

use std::ffi::OsString;
use std::io::Read as _;
use std::path::{Path, PathBuf};
use std::process::ExitCode;

use anyhow::Context;
use clap::{Parser, ValueEnum};

use crate::ai::foreign::{self, Format, ImportError};
use crate::config::Env;
use crate::modes;
use crate::session::{self, OpenSession};
use crate::util::atomic_file;
use crate::util::clock::Clock;

use super::args::Args;
use super::sessions;
use super::start::Setup;

/// Turn a conversation in a provider's request format into a session.
#[derive(Debug, Clone, clap::Args)]
pub(super) struct ImportArgs {
    /// Format of the conversation: openai (Chat Completions or Responses), anthropic or google
    #[arg(long, value_name = "FORMAT", value_parser = parse_format)]
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

/// Write a session's current branch in a provider's request format.
#[derive(Debug, Clone, clap::Args)]
pub(super) struct ExportArgs {
    /// Format to write: openai (Chat Completions), openai-responses, anthropic or google
    #[arg(long, value_name = "FORMAT", value_parser = parse_format)]
    to: Format,

    /// The session's file, id or start of its id
    session: String,

    /// File to write [default: standard output]
    file: Option<PathBuf>,

    /// One request, or one message per line
    #[arg(long, value_name = "FORM", value_enum, default_value_t = Form::Json)]
    format: Form,

    /// Replace FILE if it exists
    #[arg(long)]
    force: bool,

    /// Directory for session files
    #[arg(long, value_name = "DIR")]
    session_dir: Option<PathBuf>,
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

/// Runs `pi import`.
pub(super) fn import(args: &ImportArgs, env: Env) -> anyhow::Result<ExitCode> {
    let general = general_args(None, args.session_dir.as_deref())?;
    let setup = Setup::new(&general, env)?;
    let is_stdin = args.file.as_os_str() == "-";
    let shown = if is_stdin { "standard input".to_owned() } else { args.file.display().to_string() };
    let bytes = if is_stdin {
        let mut bytes = Vec::new();
        std::io::stdin().read_to_end(&mut bytes).map(|_| bytes)
    } else {
        std::fs::read(&args.file)
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
    let general = general_args(Some(&args.session), args.session_dir.as_deref())?;
    let setup = Setup::new(&general, env)?;
    let path = match sessions::choose(&general, &setup.folders(&general), &setup.cwd)? {
        OpenSession::File(path) => path,
        OpenSession::New | OpenSession::Forked { .. } => anyhow::bail!("no session given"),
    };
    let conversation = session::read_conversation(&path)?;
    if conversation.messages.is_empty() {
        anyhow::bail!("{} has no messages to export", path.display());
    }
    let mut report = conversation.report;
    let exported = foreign::export(args.to, &conversation.messages);
    let text = match args.format {
        Form::Json => {
            report.append(exported.report);
            serde_json::to_string_pretty(&exported.body)? + "\n"
        }
        Form::Jsonl => {
            let (lines, about_lines) = exported.into_lines();
            report.append(about_lines);
            lines.iter().map(|line| line.to_string() + "\n").collect()
        }
    };
    let Some(file) = &args.file else { return Ok(modes::show_export(&text, &report)) };
    if file.exists() && !args.force {
        anyhow::bail!("{} exists; use --force to overwrite it", file.display());
    }
    atomic_file::write(file, text.as_bytes()).with_context(|| format!("cannot write {}", file.display()))?;
    Ok(modes::show_export_file(file, &report))
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
    use super::*;

    #[test]
    fn wrong_arguments_are_errors() {
        let check = |command: &str, wrong: &[&str]| {
            let words = [&["pi", command], wrong].concat();
            assert!(Args::try_parse_from(&words).is_err(), "{words:?}");
        };
        for wrong in [&[][..], &["a.json"], &["--from", "openai"], &["--from", "cohere", "a.json"]] {
            check("import", wrong);
        }
        for wrong in [&["abc"][..], &["--to", "google"], &["--to", "google", "abc", "--format", "html"]] {
            check("export", wrong);
        }
    }

    #[test]
    fn paths_are_one_word_of_a_shell() {
        assert_eq!(quoted(Path::new("/a/b-c.jsonl")), "/a/b-c.jsonl");
        assert_eq!(quoted(Path::new("/a b/it's")), r"'/a b/it'\''s'");
    }
}

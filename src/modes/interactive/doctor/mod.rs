//! `pi doctor` and `/doctor`: what the terminal supports, what is configured, which files and
//! hosts pi uses, and what to change.
//!
//! Reads and asks, and changes nothing. Values of keys and of variables are never shown.

use std::fs;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use crate::ai::Catalog;
use crate::config::{Credentials, Dirs, EffectiveSettings, Env, KeySource, Layer, LiveSettings, ROWS};
use crate::session::{
    Configured, ResourceOptions, Services, SessionState, bash_config, default_tools, project_facts,
};
use crate::tui::term::{Questions, TerminalReply, ask_terminal};
use crate::util::visible::spell_out;
use crate::util::{counted, os, paths};

use super::appearance::{Looks, in_tmux, questions};
use super::effects::Effects;
use super::external_editor::{EditorCommand, EditorSource};
use super::keybindings;
use super::msg::EffectDone;
use super::program_status;
use super::reports::{ReportDone, ReportKind};
use super::terminal_env;
use super::theme_files::{ThemePlaces, trusted_project};

use terminal::{TerminalFacts, tmux_extended_keys, tmux_focus_events};

mod terminal;

/// How long the terminal may take to answer, also over a slow connection; as long as the interface waits.
const ANSWER_LIMIT: Duration = Duration::from_secs(2);

/// Columns of the advice.
const TEXT_WIDTH: usize = 78;

/// Variables that change what pi does; only whether they are set is shown.
const VARIABLES: &[&str] = &[
    "PI_CODING_AGENT_DIR",
    "PI_LOCAL_SERVERS",
    "PI_CACHE_RETENTION",
    "PI_COPILOT_CLIENT_ID",
    "PI_TUI_ESC_TIMEOUT",
    "PI_HYPERLINKS",
    "PI_TRUE_COLOR",
    "PI_IMAGE_PROTOCOL",
    "PI_CLIPBOARD_OSC52",
    "PI_CLEAR_ON_SHRINK",
    "PI_HARDWARE_CURSOR",
    "PI_PROGRAM_STATUS",
    "NO_COLOR",
    "HTTPS_PROXY",
    "HTTP_PROXY",
    "ALL_PROXY",
    "NO_PROXY",
];

/// What the report is made of.
pub struct DoctorInput<'a> {
    pub env: &'a Env,
    pub dirs: &'a Dirs,
    pub settings: &'a EffectiveSettings,
    /// The project's directory, if it is trusted.
    pub project: Option<&'a Path>,
    pub catalog: &'a Catalog,
    pub credentials: &'a Credentials,
    /// The folder of all sessions.
    pub sessions: &'a Path,
    /// What a session here reads besides, with what it is.
    pub files: &'a [(&'static str, PathBuf)],
    /// Problems in the user's files, one line each.
    pub problems: &'a [String],
}

/// The report of `pi doctor`, as text. Asks the terminal and blocks meanwhile.
pub fn doctor(input: &DoctorInput<'_>) -> String {
    let status = program_status::is_shown(input.env).is_none();
    let reply = ask_terminal(Questions { status, ..questions(input.env) }, ANSWER_LIMIT);
    let facts = TerminalFacts {
        reply,
        is_running: false,
        tmux_extended_keys: tmux_extended_keys(input.env),
        tmux_focus_events: tmux_focus_events(input.env),
    };
    Report::of(input, &facts).text()
}

impl Effects {
    /// Answers with [`EffectDone::Report`].
    pub(super) fn examine(&self) {
        let (services, env, done) = (Arc::clone(&self.services), self.env.clone(), self.done.clone());
        let (sessions, state) = (self.sessions.root.clone(), self.link.handle().state());
        let answers = self.answers.clone();
        tokio::task::spawn_blocking(move || {
            let facts = TerminalFacts {
                reply: TerminalReply::Answers(answers),
                is_running: true,
                tmux_extended_keys: tmux_extended_keys(&env),
                tmux_focus_events: tmux_focus_events(&env),
            };
            let markdown =
                of_session(&env, &services, &sessions, &state, |input| Report::of(input, &facts).markdown());
            let kind = ReportKind::Doctor;
            drop(done.send(EffectDone::Report(ReportDone::Report { kind, markdown, chapters: Vec::new() })));
        });
    }
}

/// The report for a mode without a screen, which asks the terminal nothing: a line for each row. Blocks.
pub(in super::super) fn doctor_lines(
    env: &Env,
    services: &Services,
    sessions: &Path,
    state: &SessionState,
) -> Vec<String> {
    of_session(env, services, sessions, state, |input| {
        let mut report = Report::default();
        report.add_files_and_programs(input);
        report.lines()
    })
}

/// What `report` makes of a session that is open, and of the user's files as they are now.
fn of_session<T>(
    env: &Env,
    services: &Services,
    sessions: &Path,
    state: &SessionState,
    report: impl FnOnce(&DoctorInput<'_>) -> T,
) -> T {
    let catalog = services.catalog.get();
    let is_trusted = state.project.trust.is_trusted();
    let facts = project_facts(services, &state.cwd, Some(is_trusted));
    let mut problems = user_problems(env, services, state);
    problems.extend(facts.problems);
    report(&DoctorInput {
        env,
        dirs: &services.dirs,
        settings: &state.settings,
        project: trusted_project(state),
        catalog: &catalog,
        credentials: &services.credentials,
        sessions,
        files: &facts.files,
        problems: &problems,
    })
}

/// What is wrong in the user's files now, as a start of pi would find it. Blocks.
fn user_problems(env: &Env, services: &Services, state: &SessionState) -> Vec<String> {
    let dirs = &services.dirs;
    let (_, mut problems) = LiveSettings::load(dirs.settings_file(), []);
    let configured = Configured::read(env, dirs, &state.settings.values, &services.clock, |_| ());
    problems.extend(configured.problems);
    problems.extend(configured.transport.certificate_problem());
    problems.extend(default_tools(&state.settings, dirs, &state.cwd).1);
    problems.iter().map(|problem| paths::with_tilde(problem, dirs.home.as_deref())).collect()
}

/// What to do about the shell that runs commands, if there is one; `is_chosen` if a setting names it.
fn shell_advice(is_chosen: bool, shell: Option<&Path>) -> Option<String> {
    match shell {
        None if is_chosen => {
            Some("correct the setting shellPath: the shell does not exist, so commands cannot run".to_owned())
        }
        None => Some(
            "install a shell such as bash, or name one in the setting shellPath: commands cannot run"
                .to_owned(),
        ),
        Some(shell) if !is_chosen && shell.ends_with("sh") => {
            Some(format!("install bash for commands that need it: they run in {}", shell.display()))
        }
        Some(_) => None,
    }
}

impl Effects {
    /// Says that tmux hides keys, if it does. Answers with [`EffectDone::TmuxHidesKeys`].
    pub(super) fn check_tmux(&self) {
        if !in_tmux(&self.env) {
            return;
        }
        let (env, done) = (self.env.clone(), self.done.clone());
        tokio::task::spawn_blocking(move || {
            let option = tmux_extended_keys(&env);
            if option.as_deref().is_none_or(|option| option == "off") {
                let text = "tmux hides shift+enter and ctrl+enter; /doctor shows how to change that.";
                // tmux before 3.2 has no such option.
                drop(done.send(EffectDone::TmuxHidesKeys { notice: option.map(|_| text.to_owned()) }));
            }
        });
    }
}

/// Sections of rows, and what to change.
#[derive(Default)]
struct Report {
    sections: Vec<Section>,
    advice: Vec<String>,
}

struct Section {
    title: &'static str,
    /// What the two columns have.
    heads: [&'static str; 2],
    rows: Vec<(String, String)>,
}

impl Report {
    fn of(input: &DoctorInput<'_>, facts: &TerminalFacts) -> Self {
        let mut report = Self::default();
        report.section("Terminal", ["Property", "This terminal"], terminal::rows(input, facts));
        report.advice.extend(terminal::advice(input, facts));
        report.advice.extend(terminal_env::escape_wait(input.env).1);
        report.advice.extend(terminal_env::problems(input.env));
        report.add_files_and_programs(input);
        report
    }

    /// Everything but the terminal.
    fn add_files_and_programs(&mut self, input: &DoctorInput<'_>) {
        self.files(input);
        self.providers(input);
        self.programs(input);
        self.advice.extend(input.problems.iter().cloned());
        self.advice.extend(kept_settings(input.settings));
    }

    fn section(&mut self, title: &'static str, heads: [&'static str; 2], rows: Vec<(&str, String)>) {
        let rows = rows.into_iter().map(|(name, value)| (name.to_owned(), value)).collect();
        self.sections.push(Section { title, heads, rows });
    }

    fn advise(&mut self, condition: bool, text: &str) {
        if condition {
            self.advice.push(text.to_owned());
        }
    }

    fn files(&mut self, input: &DoctorInput<'_>) {
        let dirs = input.dirs;
        let keybindings = dirs.keybindings_file();
        let files = [
            ("settings", dirs.settings_file()),
            ("models", dirs.models_file()),
            ("keys and accounts", dirs.auth_file()),
            ("key bindings", keybindings),
            ("trust", dirs.trust_file()),
            ("earlier prompts", dirs.prompt_history_file()),
            ("themes", dirs.agent.join("themes")),
        ];
        let mut rows: Vec<_> = files.iter().map(|(name, path)| (*name, describe(path, dirs))).collect();
        rows.push(("sessions", describe_sessions(input.sessions, dirs)));
        rows.extend(input.files.iter().map(|(name, path)| (*name, describe(path, dirs))));
        self.section("Files", ["File", "Where"], rows);
        match keybindings::load(dirs, keybindings::platform(input.env)) {
            Ok((_, problems)) => self.advice.extend(problems),
            Err(problem) => self.advice.push(problem + keybindings::DEFAULTS_APPLY),
        }
        let (looks, named) = (Looks { env: input.env, dirs }, ResourceOptions::default());
        let (settings, project) = (input.settings, input.project);
        let places = ThemePlaces { looks: &looks, settings, project, named: &named };
        self.advice.extend(places.problems(&settings.values.theme));
        let is_open = fs::metadata(dirs.auth_file()).is_ok_and(|file| os::is_open_to_others(&file));
        let auth_file = dirs.display(&dirs.auth_file());
        self.advise(is_open, &format!("others can read your keys: run chmod 600 {auth_file}"));
        let is_read_only = fs::metadata(&dirs.agent).is_ok_and(|folder| folder.permissions().readonly());
        let agent = dirs.display(&dirs.agent);
        self.advise(is_read_only, &format!("pi cannot write to {agent}; nothing would be saved"));
    }

    fn providers(&mut self, input: &DoctorInput<'_>) {
        let usable: Vec<_> = input
            .credentials
            .providers(input.catalog)
            .into_iter()
            .filter(|provider| provider.source != KeySource::None)
            .collect();
        let row = |id: &str, source: String| {
            let hosts = hosts(input.catalog, id);
            (id.to_owned(), if hosts.is_empty() { source } else { format!("{source} → {hosts}") })
        };
        let mut rows: Vec<(String, String)> =
            usable.iter().map(|provider| row(&provider.id, provider.source.to_string())).collect();
        let is_searched = input.env.get("PI_LOCAL_SERVERS").as_deref() != Some("none");
        rows.push((
            "this machine".to_owned(),
            if is_searched {
                "asked for model servers, such as Ollama"
            } else {
                "not asked for model servers"
            }
            .to_owned(),
        ));
        let heads = ["Provider", "Key and host"];
        self.sections.push(Section { title: "Providers and their hosts", heads, rows });
        self.advise(
            usable.is_empty(),
            "no provider has a key: type /login in pi, or set ANTHROPIC_API_KEY or another key",
        );
    }

    fn programs(&mut self, input: &DoctorInput<'_>) {
        let env = input.env;
        let found = |name: &str| {
            env.find_program(name).map_or_else(|| "not found".to_owned(), |path| path.display().to_string())
        };
        let editor = EditorCommand::of(&input.settings.values, env);
        self.advice.extend(editor_advice(&editor, env));
        let editor = describe_editor(&editor);
        let set: Vec<&str> = VARIABLES.iter().copied().filter(|name| env.is_set(name)).collect();
        let set = if set.is_empty() { "none".to_owned() } else { set.join(", ") };
        self.section(
            "Programs and variables",
            ["Program", "Where"],
            vec![
                ("bash", found("bash")),
                ("git", found("git")),
                ("gh", found("gh")),
                ("editor", editor),
                ("variables set", set),
            ],
        );
        let config = bash_config(&input.settings.values, env, input.dirs);
        self.advice.extend(shell_advice(config.shell_path.is_some(), config.shell().ok().as_deref()));
    }

    fn text(&self) -> String {
        let mut text = format!("pi {}\n", env!("CARGO_PKG_VERSION"));
        for Section { title, rows, .. } in &self.sections {
            let width = rows.iter().map(|(name, _)| name.chars().count()).max().unwrap_or_default();
            text.push_str(&["\n", title, "\n"].concat());
            for (name, value) in rows {
                let gap = " ".repeat(width - name.chars().count());
                text.push_str(&["  ", name, &gap, "  ", value, "\n"].concat());
            }
        }
        text.push_str("\nWhat to change\n");
        for (number, advice) in (1..).zip(&self.advice) {
            let first = format!("  {number}. ");
            let indent = " ".repeat(first.len());
            let options =
                textwrap::Options::new(TEXT_WIDTH).initial_indent(&first).subsequent_indent(&indent);
            text.push_str(&(textwrap::fill(&spell_out(advice, Some(" ")).0, options) + "\n"));
        }
        if self.advice.is_empty() {
            text.push_str("  nothing\n");
        }
        text
    }

    /// The same without columns, and what to change first.
    fn lines(&self) -> Vec<String> {
        let mut lines = vec!["What to change:".to_owned()];
        let advice = (1..).zip(&self.advice);
        lines.extend(advice.map(|(number, advice)| format!("{number}. {}", spell_out(advice, Some(" ")).0)));
        if self.advice.is_empty() {
            lines.push("Nothing.".to_owned());
        }
        for Section { title, rows, .. } in &self.sections {
            lines.push(format!("{title}:"));
            lines.extend(rows.iter().map(|(name, value)| format!("{name}: {value}")));
        }
        lines
    }

    /// What to change comes first, because the start of a report is seen first.
    fn markdown(&self) -> String {
        let mut text = "## What to change\n\n".to_owned();
        for (number, advice) in (1..).zip(&self.advice) {
            text.push_str(&[&format!("{number}. "), &spell_out(advice, Some(" ")).0, "\n"].concat());
        }
        if self.advice.is_empty() {
            text.push_str("Nothing.\n");
        }
        for Section { title, heads: [name, value], rows } in &self.sections {
            text.push_str(&["\n## ", title, "\n\n| ", name, " | ", value, " |\n|---|---|\n"].concat());
            for (name, value) in rows {
                let value = value.replace('|', "\\|");
                text.push_str(&["| ", name, " | ", &value, " |\n"].concat());
            }
        }
        text
    }
}

/// Names the settings of the user that do nothing.
fn kept_settings(settings: &EffectiveSettings) -> Option<String> {
    let is_set = |key: &str| settings.origin(key).is_some_and(|origin| origin != Layer::BuiltIn);
    let kept: Vec<&str> =
        ROWS.iter().filter(|row| row.kept.is_some() && is_set(row.key)).map(|row| row.key).collect();
    (!kept.is_empty()).then(|| {
        format!(
            "these settings are kept and have no effect; pi config list NAME says why: {}",
            kept.join(", ")
        )
    })
}

/// A path, and whether something is there.
fn describe(path: &Path, dirs: &Dirs) -> String {
    let shown = dirs.display(path);
    match fs::metadata(path) {
        Ok(found) if found.is_dir() => {
            let n_files = fs::read_dir(path).map_or(0, Iterator::count);
            format!("{shown} ({})", counted(n_files as u64, "file"))
        }
        Ok(_) => shown,
        Err(_) => format!("{shown} (none yet)"),
    }
}

/// The directory of the sessions, and how many there are, also in the directories of projects.
fn describe_sessions(path: &Path, dirs: &Dirs) -> String {
    let shown = dirs.display(path);
    let Ok(entries) = fs::read_dir(path) else { return format!("{shown} (none yet)") };
    let is_session = |path: &Path| path.extension().is_some_and(|extension| extension == "jsonl");
    let n_inside = |path: PathBuf| match fs::read_dir(&path) {
        Ok(entries) => entries.flatten().filter(|entry| is_session(&entry.path())).count(),
        Err(_) => usize::from(is_session(&path)),
    };
    let n_sessions: usize = entries.flatten().map(|entry| n_inside(entry.path())).sum();
    format!("{shown} ({})", counted(n_sessions as u64, "session"))
}

/// The command that edits a prompt, with what names it, or what is missing.
fn describe_editor(editor: &Result<EditorCommand, String>) -> String {
    match editor {
        Ok(EditorCommand { line, source }) => match source {
            EditorSource::Setting => format!("{line} (setting externalEditor)"),
            EditorSource::Variable(name) => format!("{line} ({name})"),
            EditorSource::Default => format!("{line}, as VISUAL and EDITOR are not set"),
        },
        Err(_) => "not found".to_owned(),
    }
}

/// What to do about an editor that is not there. A quoted path is not looked for.
fn editor_advice(editor: &Result<EditorCommand, String>, env: &Env) -> Option<String> {
    let command = match editor {
        Ok(command) => &command.line,
        Err(problem) => return Some(problem.clone()),
    };
    let name = command.split_whitespace().next().filter(|name| !name.contains(['"', '\'']))?;
    let is_there =
        if name.contains('/') { Path::new(name).is_file() } else { env.find_program(name).is_some() };
    (!is_there)
        .then(|| format!("install {name}, or name your editor in VISUAL: prompts cannot be edited in {name}"))
}

/// The hosts of a provider's models.
fn hosts(catalog: &Catalog, provider: &str) -> String {
    let mut hosts: Vec<&str> =
        catalog.models_of(provider).iter().filter_map(|model| host(&model.base_url)).collect();
    hosts.sort_unstable();
    hosts.dedup();
    hosts.join(", ")
}

/// The host and port of an address.
fn host(address: &str) -> Option<&str> {
    let (_, rest) = address.split_once("://")?;
    let authority = rest.split(['/', '?']).next()?;
    // A name and password would come first.
    authority.rsplit('@').next().filter(|host| !host.is_empty())
}

#[cfg(test)]
pub(super) mod tests;

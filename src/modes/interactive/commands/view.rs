//! Commands about the screen.

use crate::session::SessionCommand;
use crate::util::nearest::most_similar_first;

use super::super::actions;
use super::super::app::App;
use super::super::msg::{Effect, ScreenEffect, WorldEffect};
use super::super::overlays::{SettingsDialog, Themes};
use super::super::pager;
use super::super::reports::{self, ReportKind};
use super::super::theme_files::ListedTheme;
use super::Command;

pub(super) const COMMANDS: &[Command] = &[
    Command {
        name: "copy",
        args: "",
        help: "Copy the last answer",
        run: |app, _, out| actions::copy_answer(app, out),
    },
    Command {
        name: "transcript",
        args: "",
        help: "Show the whole transcript, with search",
        run: |app, _, out| pager::open(app, out),
    },
    Command {
        name: "output",
        args: "",
        help: "Show the complete output of a tool or command",
        run: |app, _, out| reports::open(app, ReportKind::Outputs, out),
    },
    Command {
        name: "fullscreen",
        args: "",
        help: "Switch between the main screen and fullscreen",
        run: |app, _, out| actions::toggle_fullscreen(app, out),
    },
    Command {
        name: "redraw",
        args: "",
        help: "Clear screen and scrollback, and write the transcript again at the current width",
        run: |_, _, out| out.push(ScreenEffect::Replay.into()),
    },
    Command {
        name: "theme",
        args: "[NAME]",
        help: "Choose a theme; each is shown while it is selected; LIGHT/DARK follows the terminal",
        run: |_, args, out| out.push(WorldEffect::ListThemes(args.to_owned()).into()),
    },
    Command {
        name: "doctor",
        args: "",
        help: "Check the terminal, files and providers, and say what to change",
        run: |app, _, out| reports::open(app, ReportKind::Doctor, out),
    },
    Command {
        name: "debug",
        args: "",
        help: "Write what is on the screen to a file, for a report about it",
        run: |_, _, out| out.push(ScreenEffect::ReportScreen.into()),
    },
    Command {
        name: "settings",
        args: "[SEARCH]",
        help: "Show and change settings",
        run: |app, args, _| {
            let dialog = SettingsDialog::new(&app.session.settings, app.dialogs.models(), args);
            app.dialogs.show(dialog);
        },
    },
    Command {
        name: "hotkeys",
        args: "",
        help: "Show all keys and commands",
        run: |app, _, out| reports::open(app, ReportKind::Hotkeys, out),
    },
    Command {
        name: "changelog",
        args: "",
        help: "Show what changed in pi",
        run: |app, _, out| reports::open(app, ReportKind::Changelog, out),
    },
];

/// Says which themes there are, those that are spelt like `name` first.
fn unknown_theme(themes: &[ListedTheme], name: &str) -> String {
    const MOST: usize = 12;
    let names = most_similar_first(name, themes.iter().map(|theme| theme.name.as_str()).collect());
    let more = match names.len().saturating_sub(MOST) {
        0 => String::new(),
        n => format!(" and {n} more"),
    };
    let names = names[..names.len().min(MOST)].join(", ");
    format!("there is no theme \"{name}\"; the themes are {names}{more}")
}

/// Changes to the theme that was named, if it can be used, or lists the themes.
pub(in super::super) fn on_themes(
    app: &mut App,
    themes: Vec<ListedTheme>,
    query: &str,
    out: &mut Vec<Effect>,
) {
    let find = |name: &str| themes.iter().find(|theme| theme.name == name);
    let named = match query.split_once('/') {
        Some((light, dark)) => [light, dark].map(|name| find(name).ok_or(name)).to_vec(),
        None => find(query).map(Ok).into_iter().collect(),
    };
    if !named.is_empty() {
        let unusable = named.into_iter().find_map(|theme| match theme {
            Ok(ListedTheme { name, problem }) => Some(format!("theme \"{name}\": {}", problem.as_ref()?)),
            Err(name) => Some(unknown_theme(&themes, name)),
        });
        if let Some(problem) = unusable {
            return app.refuse_command(&format!("theme {query}"), &problem);
        }
        let (key, value) = ("theme".to_owned(), Some(query.into()));
        return out.push(Effect::session(SessionCommand::ChangeSetting { key, value }));
    }
    let current = &app.session.settings.values.theme;
    let dialog = Themes::new(&themes, current, query);
    if dialog.is_empty() {
        return app.refuse_command(&format!("theme {query}"), &unknown_theme(&themes, query));
    }
    app.dialogs.show(dialog);
}

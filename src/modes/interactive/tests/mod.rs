//! The app as a user has it, without a terminal and a session: keys as a terminal sends them, and
//! whole screens.

mod commands;
mod debug;
mod emulators;
mod enter;
mod inline;
mod keys;
mod late_size;
mod over_screen;
mod overlays;
mod plain;
mod resources;
mod screens;
mod streamed;
mod suggestions;
mod tree;
mod unicode;

use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use crossterm::event::{Event, KeyCode, KeyEvent, KeyModifiers};
use ratatui::layout::Size;
use serde_json::{Value, json};
use terminput::{Encoding, KittyFlags};

use crate::agent::AgentEvent;
use crate::ai::{AssistantBlock, AssistantMessage, Message, Millis, StopReason, Text, ToolCall, UserMessage};
use crate::session::{SessionEvent, SessionState};
use crate::tui::markdown::Highlighter;
use crate::tui::term::{FullscreenWindow, InputEvent, recorded_input};
use crate::tui::theme::{Appearance, ColorDepth, Theme};

use super::app::{App, AppParts};
use super::fullscreen;
use super::keybindings::default_keymap;
use super::msg::{Effect, WorldEffect};
use super::overlays::ModelChoice;
use super::transcript::{Transcript, ViewSettings};
use super::ui::draw_fullscreen;

/// What terminals send for keys: those with the kitty protocol, and all others.
pub(super) const KITTY: Encoding = Encoding::Kitty(KittyFlags::DISAMBIGUATE_ESCAPE_CODES);
pub(super) const LEGACY: Encoding = Encoding::Xterm;

pub(super) struct Stage {
    pub(super) app: App,
    pub(super) effects: Vec<Effect>,
    encoding: Encoding,
}

fn models() -> Vec<Arc<crate::ai::Model>> {
    let model = |id: &str, name: &str, reasoning: bool| -> Arc<crate::ai::Model> {
        let value = json!({ "id": id, "name": name, "api": "openai-completions", "provider": "acme",
            "reasoning": reasoning, "contextWindow": 200_000 });
        Arc::new(serde_json::from_value(value).unwrap())
    };
    vec![
        model("sonata-4-large-2026-10-01", "Sonata 4 Large", true),
        model("mini", "Mini", false),
        model("qwen3-coder-480b-a35b-instruct", "Qwen3 Coder 480B A35B Instruct", true),
    ]
}

impl Stage {
    /// An idle session in `/home/me/project`.
    pub(super) fn new() -> Self {
        let models = models();
        let session = SessionState::of(&models[0], Path::new("/home/me/project"));
        let home = Path::new("/home/me");
        let view = ViewSettings::new("ctrl+o".to_owned(), "/home/me/project".into(), Some(home.into()));
        let mut transcript = Transcript::new(Highlighter::new(), view);
        transcript.header("pi", "v0", &["escape interrupt · / commands · ctrl+o more"]);
        let app = App::new(AppParts {
            session: session.into(),
            transcript,
            keymap: default_keymap(),
            theme: Theme::builtin("dark", Appearance::Dark, ColorDepth::True).unwrap(),
            models: ModelChoice::of(&models),
            home: Some(home.into()),
        });
        Self { app, effects: Vec::new(), encoding: KITTY }
    }

    pub(super) fn session(&mut self, change: impl FnOnce(&mut SessionState)) -> &mut Self {
        change(Arc::make_mut(&mut self.app.session));
        self
    }

    /// Types keys as users name them: `hi<alt+enter>`.
    pub(super) fn type_keys(&mut self, keys: &str) -> &mut Self {
        self.type_bytes(&bytes(keys, self.encoding))
    }

    /// What a terminal sends.
    pub(super) fn type_bytes(&mut self, bytes: &[u8]) -> &mut Self {
        for event in recorded_input([bytes], false) {
            self.app.on_input(&event, &mut self.effects);
        }
        self
    }

    pub(super) fn paste(&mut self, text: &str) -> &mut Self {
        let pasted = [b"\x1b[200~", text.as_bytes(), b"\x1b[201~"].concat();
        for event in recorded_input([pasted.as_slice()], false) {
            assert!(matches!(event, InputEvent::Paste(_)));
            self.app.on_input(&event, &mut self.effects);
        }
        self
    }

    /// The commands to the session since the last call.
    pub(super) fn commands(&mut self) -> Vec<String> {
        let commands = self.effects.drain(..).filter_map(|effect| match effect {
            Effect::World(WorldEffect::Session(command)) => Some(format!("{command:?}")),
            _ => None,
        });
        commands.collect()
    }

    /// The text in the editor, with `|` where the cursor is.
    pub(super) fn editor(&self) -> String {
        let composer = &self.app.input.prompt.composer;
        let (before, after) = (composer.before_cursor(), composer.after_cursor());
        let (text, line) = (composer.text(), format!("{before}{after}"));
        text.replacen(&line, &format!("{before}|{after}"), 1)
    }

    pub(super) fn message(&mut self, message: Message) -> &mut Self {
        self.agent(AgentEvent::MessageEnd(Arc::new(message)))
    }

    pub(super) fn agent(&mut self, event: AgentEvent) -> &mut Self {
        self.app.transcript.apply(&SessionEvent::Agent(event), Duration::ZERO);
        self
    }

    /// What the screen shows in fullscreen.
    pub(super) fn screen(&mut self, width: u16, height: u16) -> Vec<String> {
        fullscreen::set(&mut self.app, true);
        let size = Size::new(width, height);
        let (columns, rows) =
            (std::num::NonZeroU16::new(width).unwrap(), std::num::NonZeroU16::new(height).unwrap());
        let mut terminal = vt100::Parser::new(rows, columns, 0);
        let mut window = FullscreenWindow::new(Vec::new(), size);
        draw_fullscreen(&mut self.app, &mut window).unwrap();
        terminal.process(window.sink());
        terminal.screen().rows(0, width).map(|row| row.trim_end().to_owned()).collect()
    }
}

/// What a terminal sends for keys as users name them.
fn bytes(keys: &str, encoding: Encoding) -> Vec<u8> {
    let mut bytes = Vec::new();
    let mut rest = keys;
    while let Some(c) = rest.chars().next() {
        let named = rest.strip_prefix('<').and_then(|rest| rest.split_once('>'));
        let (event, after) = match named {
            Some((name, after)) => (named_key(name), after),
            None => (KeyEvent::new(KeyCode::Char(c), KeyModifiers::NONE), &rest[c.len_utf8()..]),
        };
        // Keys without a character are the same in both encodings.
        let encoding =
            if matches!(event.code, KeyCode::Char(_) | KeyCode::Enter | KeyCode::Esc | KeyCode::Backspace) {
                encoding
            } else {
                LEGACY
            };
        let event = terminput_crossterm::to_terminput(Event::Key(event)).unwrap();
        let mut buffer = [0; 32];
        let n_bytes = event.encode(&mut buffer, encoding).unwrap();
        bytes.extend_from_slice(&buffer[..n_bytes]);
        rest = after;
    }
    bytes
}

fn named_key(name: &str) -> KeyEvent {
    let (held, key) = name.rsplit_once('+').unwrap_or(("", name));
    let modifiers = held.split('+').map(|held| match held {
        "ctrl" => KeyModifiers::CONTROL,
        "alt" => KeyModifiers::ALT,
        "shift" => KeyModifiers::SHIFT,
        "" => KeyModifiers::NONE,
        other => panic!("{other} is no modifier"),
    });
    let code = match key {
        "enter" => KeyCode::Enter,
        "escape" => KeyCode::Esc,
        "tab" => KeyCode::Tab,
        "backspace" => KeyCode::Backspace,
        "delete" => KeyCode::Delete,
        "home" => KeyCode::Home,
        "end" => KeyCode::End,
        "pageUp" => KeyCode::PageUp,
        "pageDown" => KeyCode::PageDown,
        "up" => KeyCode::Up,
        "down" => KeyCode::Down,
        "left" => KeyCode::Left,
        "right" => KeyCode::Right,
        "space" => KeyCode::Char(' '),
        key => KeyCode::Char(key.chars().next().filter(|c| key.len() == c.len_utf8()).unwrap()),
    };
    KeyEvent::new(code, modifiers.collect())
}

pub(super) fn user(text: &str) -> Message {
    Message::User(UserMessage::new(text, vec![], Millis(0)))
}

/// An answer of words with the numbers of their block and of themselves, so that each can be found.
fn block_of_words(block: usize, n_words: usize) -> Message {
    let words: Vec<String> = (0..n_words).map(|n| format!("w{block:03}.{n:02}")).collect();
    answer(StopReason::Stop, vec![says(&words.join(" "))])
}

pub(super) fn answer(stop_reason: StopReason, content: Vec<AssistantBlock>) -> Message {
    let mut message = AssistantMessage::pending(Default::default(), "acme", "m-1", Millis(0));
    (message.content, message.stop_reason) = (content, stop_reason);
    Message::from(message)
}

pub(super) fn says(text: &str) -> AssistantBlock {
    AssistantBlock::Text(Text::new(text))
}

pub(super) fn call(name: &str, arguments: Value) -> ToolCall {
    serde_json::from_value(json!({ "id": format!("call-{name}"), "name": name, "arguments": arguments }))
        .unwrap()
}

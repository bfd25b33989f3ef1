//! Settings of the screens.

use serde::Deserialize;

/// The screen that interactive mode draws on.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum TuiMode {
    /// The main screen, with the terminal's scrollback.
    #[default]
    Regular,
    /// The alternate screen, which pi scrolls itself.
    Fullscreen,
}

/// What interactive mode shows when it starts.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum StartDisplay {
    /// The header, and what was loaded.
    #[default]
    Whole,
    /// The header.
    Header,
    /// Neither.
    Nothing,
}

/// How the editor and the transcript are laid out.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct LayoutSettings {
    /// Suggestions shown at once.
    pub completion_rows: u16,
    /// Blank columns on both sides of the editor's text.
    pub editor_padding: u16,
    /// Blank columns left and right of answers, at most.
    pub output_padding: u16,
    /// In front of each line of code in answers.
    pub code_indent: String,
    /// When Mermaid diagrams in answers are drawn.
    pub mermaid: DiagramTiming,
    /// Whether the terminal shows its cursor; otherwise a block is drawn.
    pub hardware_cursor: bool,
    /// Whether the transcript is written again when it needs fewer rows.
    pub clear_on_shrink: bool,
}

/// When Mermaid diagrams are drawn.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Deserialize)]
pub enum DiagramTiming {
    /// Their source is shown.
    #[serde(rename = "off")]
    Never,
    /// As soon as the answer is complete.
    #[serde(rename = "final")]
    WhenAnswerEnds,
    /// As soon as the diagram is complete.
    #[default]
    #[serde(rename = "streaming")]
    WhenFenceCloses,
}

/// How fullscreen works.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct FullscreenSettings {
    /// Whether the end of a selection copies it.
    pub copy_on_select: bool,
    /// What stands on the main screen afterwards.
    pub exit_output: ExitOutput,
    /// When there is a scrollbar.
    pub scrollbar: Scrollbar,
    /// Rows per step of the wheel; `None` means that they follow its speed.
    pub wheel_lines: Option<u16>,
}

/// What stands on the main screen after fullscreen.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum ExitOutput {
    /// The transcript, each row once.
    #[default]
    Transcript,
    /// Only the line that says how to resume the session.
    ResumeHint,
}

/// When fullscreen shows a scrollbar.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Scrollbar {
    /// While earlier rows are shown.
    #[default]
    Auto,
    /// At all times.
    Always,
    /// Never.
    Hidden,
}

//! The tokens of a theme, one row each.
//!
//! The names are those of pi's theme files. `docs` and the loader read this
//! table; to add a token, add its variant and its row.

/// Purpose of a colour.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Token {
    Accent,
    Border,
    BorderAccent,
    BorderMuted,
    Success,
    Error,
    Warning,
    Muted,
    Dim,
    Text,
    ThinkingText,
    ScrollbarTrack,
    ScrollbarThumb,
    SelectedBg,
    SearchMatchBg,
    SearchMatchText,
    UserMessageBg,
    UserMessageText,
    CustomMessageBg,
    CustomMessageText,
    CustomMessageLabel,
    ToolPendingBg,
    ToolSuccessBg,
    ToolErrorBg,
    ToolTitle,
    ToolOutput,
    MdHeading,
    MdLink,
    MdLinkUrl,
    MdCode,
    MdCodeBlock,
    MdCodeBlockBorder,
    MdQuote,
    MdQuoteBorder,
    MdHr,
    MdListBullet,
    ToolDiffAdded,
    ToolDiffRemoved,
    ToolDiffContext,
    SyntaxComment,
    SyntaxKeyword,
    SyntaxFunction,
    SyntaxVariable,
    SyntaxString,
    SyntaxNumber,
    SyntaxType,
    SyntaxOperator,
    SyntaxPunctuation,
    ThinkingOff,
    ThinkingMinimal,
    ThinkingLow,
    ThinkingMedium,
    ThinkingHigh,
    ThinkingXhigh,
    ThinkingMax,
    BashMode,
}

impl Token {
    /// This token's row of [`TABLE`].
    pub fn row(self) -> &'static TokenRow {
        &TABLE[self.index()]
    }

    pub(super) fn index(self) -> usize {
        self as usize
    }
}

/// The part of a cell that a token colours.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Kind {
    Foreground,
    Background,
}

/// One token, for theme files and documentation.
#[derive(Debug, Clone, Copy)]
pub struct TokenRow {
    pub token: Token,
    /// Key in the `colors` object of a theme file.
    pub name: &'static str,
    pub kind: Kind,
    /// The token used if a theme leaves this one out; `None` means
    /// every theme must have it.
    pub fallback: Option<Token>,
    pub help: &'static str,
}

const fn fg(token: Token, name: &'static str, help: &'static str) -> TokenRow {
    TokenRow { token, name, kind: Kind::Foreground, fallback: None, help }
}

const fn bg(token: Token, name: &'static str, help: &'static str) -> TokenRow {
    TokenRow { token, name, kind: Kind::Background, fallback: None, help }
}

const fn or(fallback: Token, row: TokenRow) -> TokenRow {
    TokenRow { fallback: Some(fallback), ..row }
}

/// Every token, in the order of [`Token`].
pub const TABLE: &[TokenRow; 56] = &[
    fg(Token::Accent, "accent", "Highlights: the selection, the cursor of a list, the logo."),
    fg(Token::Border, "border", "Frames of selectors and dialogs."),
    fg(Token::BorderAccent, "borderAccent", "Frames that need attention."),
    fg(Token::BorderMuted, "borderMuted", "Quiet frames and separators."),
    fg(Token::Success, "success", "Something worked."),
    fg(Token::Error, "error", "Something failed."),
    fg(Token::Warning, "warning", "Something needs care."),
    fg(Token::Muted, "muted", "Secondary text."),
    fg(Token::Dim, "dim", "Hints and the footer."),
    fg(Token::Text, "text", "Ordinary text."),
    fg(Token::ThinkingText, "thinkingText", "What the model thinks."),
    or(Token::Muted, fg(Token::ScrollbarTrack, "scrollbarTrack", "Scroll bar in fullscreen: the groove.")),
    or(Token::Text, fg(Token::ScrollbarThumb, "scrollbarThumb", "Scroll bar in fullscreen: the handle.")),
    bg(Token::SelectedBg, "selectedBg", "Behind the selected row and selected text."),
    or(Token::SelectedBg, bg(Token::SearchMatchBg, "searchMatchBg", "Behind a search match.")),
    or(Token::Text, fg(Token::SearchMatchText, "searchMatchText", "A search match.")),
    bg(Token::UserMessageBg, "userMessageBg", "Behind what the user wrote."),
    fg(Token::UserMessageText, "userMessageText", "What the user wrote."),
    bg(Token::CustomMessageBg, "customMessageBg", "Behind messages of other kinds, such as summaries."),
    fg(Token::CustomMessageText, "customMessageText", "Text of messages of other kinds."),
    fg(Token::CustomMessageLabel, "customMessageLabel", "The label that names the kind."),
    bg(Token::ToolPendingBg, "toolPendingBg", "Behind a tool call that runs."),
    bg(Token::ToolSuccessBg, "toolSuccessBg", "Behind a tool call that worked."),
    bg(Token::ToolErrorBg, "toolErrorBg", "Behind a tool call that failed."),
    fg(Token::ToolTitle, "toolTitle", "The name of a tool."),
    fg(Token::ToolOutput, "toolOutput", "What a tool printed."),
    fg(Token::MdHeading, "mdHeading", "Markdown: headings."),
    fg(Token::MdLink, "mdLink", "Markdown: the text of a link."),
    fg(Token::MdLinkUrl, "mdLinkUrl", "Markdown: the address of a link."),
    fg(Token::MdCode, "mdCode", "Markdown: code within a sentence."),
    fg(Token::MdCodeBlock, "mdCodeBlock", "Markdown: code without known language."),
    fg(Token::MdCodeBlockBorder, "mdCodeBlockBorder", "Markdown: the fences of a code block."),
    fg(Token::MdQuote, "mdQuote", "Markdown: quoted text."),
    fg(Token::MdQuoteBorder, "mdQuoteBorder", "Markdown: the bar beside a quote."),
    fg(Token::MdHr, "mdHr", "Markdown: horizontal rules."),
    fg(Token::MdListBullet, "mdListBullet", "Markdown: bullets and numbers of lists."),
    fg(Token::ToolDiffAdded, "toolDiffAdded", "Diffs: added lines, and the tint behind them."),
    fg(Token::ToolDiffRemoved, "toolDiffRemoved", "Diffs: removed lines, and the tint behind them."),
    fg(Token::ToolDiffContext, "toolDiffContext", "Diffs: unchanged lines."),
    fg(Token::SyntaxComment, "syntaxComment", "Code: comments."),
    fg(Token::SyntaxKeyword, "syntaxKeyword", "Code: keywords."),
    fg(Token::SyntaxFunction, "syntaxFunction", "Code: names of functions."),
    fg(Token::SyntaxVariable, "syntaxVariable", "Code: variables and fields."),
    fg(Token::SyntaxString, "syntaxString", "Code: strings."),
    fg(Token::SyntaxNumber, "syntaxNumber", "Code: numbers and constants."),
    fg(Token::SyntaxType, "syntaxType", "Code: types."),
    fg(Token::SyntaxOperator, "syntaxOperator", "Code: operators."),
    fg(Token::SyntaxPunctuation, "syntaxPunctuation", "Code: brackets and separators."),
    fg(Token::ThinkingOff, "thinkingOff", "Editor border: thinking off."),
    fg(Token::ThinkingMinimal, "thinkingMinimal", "Editor border: thinking level minimal."),
    fg(Token::ThinkingLow, "thinkingLow", "Editor border: thinking level low."),
    fg(Token::ThinkingMedium, "thinkingMedium", "Editor border: thinking level medium."),
    fg(Token::ThinkingHigh, "thinkingHigh", "Editor border: thinking level high."),
    fg(Token::ThinkingXhigh, "thinkingXhigh", "Editor border: thinking level xhigh."),
    or(Token::ThinkingXhigh, fg(Token::ThinkingMax, "thinkingMax", "Editor border: thinking level max.")),
    fg(Token::BashMode, "bashMode", "Editor border and title of `!` commands."),
];

#[cfg(test)]
mod tests {
    use std::collections::HashSet;

    use super::*;

    #[test]
    fn rows_stand_in_the_order_of_the_enum() {
        for (row_idx, row) in TABLE.iter().enumerate() {
            assert_eq!(row.token.index(), row_idx, "{}", row.name);
        }
    }

    #[test]
    fn names_are_unique_and_explained() {
        let names: HashSet<_> = TABLE.iter().map(|row| row.name).collect();
        assert_eq!(names.len(), TABLE.len());
        assert!(TABLE.iter().all(|row| !row.help.is_empty()));
    }

    #[test]
    fn fallbacks_are_required_tokens_or_end_in_one() {
        for row in TABLE {
            let mut token = row.token;
            let mut steps = 0;
            while let Some(next) = token.row().fallback {
                token = next;
                steps += 1;
                assert!(steps < TABLE.len(), "{} falls back in a circle", row.name);
            }
        }
    }
}

//! Summaries of conversations, by rules: the requests of the user, word for word.

/// Longest part of a request that is quoted.
const QUOTE_CHARS: usize = 300;
/// Latest requests that are quoted.
const MAX_QUOTES: usize = 20;

/// Answers a request to summarise or hand off a conversation; `None` if `said` is none.
pub(super) fn answer(said: &str) -> Option<String> {
    let (conversation, request) = said.strip_prefix("<conversation>\n")?.rsplit_once("\n</conversation>")?;
    let requests: Vec<String> = conversation
        .split("\n\n[")
        .filter_map(|part| part.trim_start_matches('[').strip_prefix("User]: "))
        .map(quoted)
        .collect();
    let list: Vec<String> =
        requests.iter().rev().take(MAX_QUOTES).rev().map(|request| format!("- {request}")).collect();
    let goal = match request.rsplit_once("The goal: ") {
        Some((_, goal)) => goal.trim().to_owned(),
        None => requests.last().cloned().unwrap_or_else(|| "none".to_owned()),
    };
    Some(format!(
        "## Goal\n{goal}\n\n## Context\nThe demo model cannot summarise. The user asked:\n{}",
        list.join("\n")
    ))
}

fn quoted(text: &str) -> String {
    let line = text.split_whitespace().collect::<Vec<_>>().join(" ");
    match line.char_indices().nth(QUOTE_CHARS) {
        Some((end, _)) => format!("{}…", &line[..end]),
        None => line,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn requests_are_quoted_and_nothing_else_is_a_summary() {
        let said = "<conversation>\n[User]: make\na file\n\n[Assistant]: done\n\n[User]: now test it\n</conversation>\n\n";
        let list = "The demo model cannot summarise. The user asked:\n- make a file\n- now test it";
        assert_eq!(
            answer(&format!("{said}Summarise.")).unwrap(),
            format!("## Goal\nnow test it\n\n## Context\n{list}")
        );
        assert_eq!(
            answer(&format!("{said}Write.\n\nThe goal: ship it")).unwrap(),
            format!("## Goal\nship it\n\n## Context\n{list}")
        );
        assert_eq!(answer("summarise this"), None);
        assert_eq!(answer("<conversation>\nhalf"), None);
    }
}

//! What is wrong with JSON that people write, in words about their file.

/// Describes `error` and its place. The parser's own words for a text that ends too early are about
/// the parser.
pub fn json_problem(error: &serde_json::Error) -> String {
    if error.is_eof() {
        let (line, column) = (error.line(), error.column());
        return format!("the file ends at line {line}, column {column}, before its JSON is complete");
    }
    error.to_string()
}

#[cfg(test)]
mod tests {
    use serde_json::Value;

    use super::*;

    #[test]
    fn text_that_ends_too_early_is_named_and_other_problems_have_their_place() {
        let check = |text: &str, expected: &str| {
            assert_eq!(json_problem(&serde_json::from_str::<Value>(text).unwrap_err()), expected);
        };
        check("{\n  \"theme\": ", "the file ends at line 2, column 11, before its JSON is complete");
        check("{\n  \"theme\": dark\n}", "expected value at line 2 column 12");
    }
}

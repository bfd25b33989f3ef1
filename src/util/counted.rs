//! Numbers with what they count.

/// `1 line`, `2 lines`.
pub fn counted(n: u64, noun: &str) -> String {
    format!("{n} {noun}{}", if n == 1 { "" } else { "s" })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_is_singular() {
        let lines = [0, 1, 2].map(|n| counted(n, "line"));
        assert_eq!(lines, ["0 lines", "1 line", "2 lines"]);
    }
}

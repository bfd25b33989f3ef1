//! Numbers with what they count.

/// `1 line`, `2 lines`, `2 entries`.
pub fn counted(n: u64, noun: &str) -> String {
    let ies = noun.strip_suffix('y').filter(|stem| !stem.ends_with(['a', 'e', 'o', 'u']));
    match ies {
        _ if n == 1 => format!("{n} {noun}"),
        Some(stem) => format!("{n} {stem}ies"),
        None => format!("{n} {noun}s"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_is_singular() {
        let lines = [0, 1, 2].map(|n| counted(n, "line"));
        assert_eq!(lines, ["0 lines", "1 line", "2 lines"]);
        let entries = [1, 3].map(|n| counted(n, "earlier entry"));
        assert_eq!(entries, ["1 earlier entry", "3 earlier entries"]);
        assert_eq!(counted(2, "day"), "2 days");
    }
}

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

/// A number with commas between its thousands.
pub fn grouped(number: u64) -> String {
    let digits = number.to_string();
    let mut out = String::with_capacity(digits.len() + digits.len() / 3);
    for (at, digit) in digits.chars().enumerate() {
        if at > 0 && (digits.len() - at).is_multiple_of(3) {
            out.push(',');
        }
        out.push(digit);
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn thousands_are_grouped() {
        for (number, expected) in
            [(0, "0"), (999, "999"), (1_000, "1,000"), (111_616, "111,616"), (1_234_567, "1,234,567")]
        {
            assert_eq!(grouped(number), expected);
        }
    }

    #[test]
    fn one_is_singular() {
        let lines = [0, 1, 2].map(|n| counted(n, "line"));
        assert_eq!(lines, ["0 lines", "1 line", "2 lines"]);
        let entries = [1, 3].map(|n| counted(n, "earlier entry"));
        assert_eq!(entries, ["1 earlier entry", "3 earlier entries"]);
        assert_eq!(counted(2, "day"), "2 days");
    }
}

//! Formulas as Unicode text.
//!
//! Symbols and scripts come from `unicodeit`; fractions, roots, accents and names of functions
//! are written in one line here. A formula that needs more stays as the model wrote it.

use std::borrow::Cow;
use std::collections::HashMap;
use std::sync::{LazyLock, Mutex, PoisonError};

use regex::{Captures, Regex};

/// A regular expression that is compiled once.
macro_rules! pattern {
    ($pattern:literal) => {{
        static REGEX: LazyLock<Regex> =
            LazyLock::new(|| Regex::new($pattern).expect("the pattern is valid (tested)"));
        &*REGEX
    }};
}

/// Longer formulas stay as they are.
const MAX_BYTES: usize = 1_000;
/// Formulas whose text is remembered: a text that arrives is rendered again and again.
const MAX_CACHED: usize = 512;

/// The characters that Unicode has as superscripts and subscripts.
const SUPERSCRIPTS: &str = "0123456789+-=()ABDEGHIJKLMNOPRTUWabcdefghijklmnoprstuvwxyz";
const SUBSCRIPTS: &str = "0123456789+-=()aeoxjhklmnpstiruv";

/// Stand for characters that have a meaning in formulas, while they are converted.
const HELD: [(char, char); 5] =
    [('\u{e000}', '^'), ('\u{e001}', '_'), ('\u{e002}', '{'), ('\u{e003}', '}'), ('\u{e004}', '&')];

/// The text of a formula; `None` if part of it has none.
pub(super) fn unicode(source: &str) -> Option<String> {
    static CACHE: LazyLock<Mutex<HashMap<String, Option<String>>>> = LazyLock::new(Mutex::default);
    if source.len() > MAX_BYTES {
        return None;
    }
    let cached = CACHE.lock().unwrap_or_else(PoisonError::into_inner).get(source).cloned();
    cached.unwrap_or_else(|| {
        let text = convert(source);
        let mut cache = CACHE.lock().unwrap_or_else(PoisonError::into_inner);
        if cache.len() >= MAX_CACHED {
            cache.clear();
        }
        cache.insert(source.to_owned(), text.clone());
        text
    })
}

/// Whether the text between dollars is a formula: it has commands, or scripts of short names. Dollars also occur in
/// prices and in names of variables.
pub(super) fn is_formula(source: &str) -> bool {
    let is_command = |rest: &str| rest.starts_with(|c: char| c.is_ascii_alphabetic());
    if source.match_indices('\\').any(|(at, _)| is_command(&source[at + 1..])) {
        return true;
    }
    let has_scripts = source.contains(['^', '_']) && !source.starts_with('{');
    has_scripts && source.split(|c: char| !c.is_ascii_alphabetic()).all(|name| name.len() <= 2)
}

/// Whether a text is a formula of short names and signs. Between dollars it could be anything.
pub(super) fn is_short_formula(source: &str) -> bool {
    let is_sign = |c: char| c.is_ascii_digit() || " +-*/=<>(),.!'\n".contains(c);
    source.contains(|c: char| c.is_ascii_alphabetic())
        && source.chars().all(|c| c.is_ascii_alphabetic() || is_sign(c))
        && source.split(|c: char| !c.is_ascii_alphabetic()).all(|name| name.len() <= 2)
}

fn convert(source: &str) -> Option<String> {
    let source = in_rows(source.trim())?;
    if source.contains(HELD.map(|(held, _)| held)) {
        return None;
    }
    let text = in_one_line(&source);
    // Without its brackets the degree of a root would look like a factor; without braces a command would mean less.
    if pattern!(r"\\sqrt\s*\[|\\[a-zA-Z]+\{[^{}]{2,}\}").is_match(&text) {
        return None;
    }
    let commands = pattern!(r"\\(?:[a-zA-Z]+(?:\{[a-zA-Z0-9]\})?|.)");
    if !commands.find_iter(&text).all(|command| is_known(command.as_str())) {
        return None;
    }
    let mut text = unicodeit::replace(&text).replace(['{', '}'], "");
    if text.contains('\\') {
        return None;
    }
    for (held, c) in HELD {
        text = text.replace(held, &c.to_string());
    }
    let lines = text.lines().map(|line| line.split_whitespace().collect::<Vec<_>>().join(" "));
    let lines: Vec<String> = lines.filter(|line| !line.is_empty()).collect();
    (!lines.is_empty()).then(|| lines.join("\n"))
}

/// Without the environments whose rows can be lines of text. `None` if there are others, such as matrices and cases:
/// without their delimiters they would mean something else. So would columns outside of an environment.
fn in_rows(source: &str) -> Option<Cow<'_, str>> {
    let mark = pattern!(
        r"\\(?:begin|end)\{(?:aligned|alignedat|align|alignat|eqnarray|equation|flalign|gathered|gather|multlined|multline|split)\*?\}(?:\{[0-9]+\})?"
    );
    let text = mark.replace_all(source, "");
    let has_mark = matches!(text, Cow::Owned(_));
    let has_other = pattern!(r"\\(?:begin|end)([^a-zA-Z]|$)").is_match(&text);
    let has_columns = text.replace(r"\&", "").contains('&');
    (!has_other && (has_mark || !has_columns)).then_some(text)
}

/// Whether `unicodeit` knows a command. Of others it replaces the beginning: `\log` becomes
/// `łog`. It fails on accents over several characters; those over one are replaced before.
fn is_known(command: &str) -> bool {
    const ACCENTS: [&str; 14] = [
        "doubleunderline",
        "strikethrough",
        "underline",
        "overline",
        "tilde",
        "grave",
        "acute",
        "slash",
        "breve",
        "ddot",
        "dot",
        "bar",
        "vec",
        "hat",
    ];
    let name = command.trim_start_matches('\\').split('{').next().unwrap_or_default();
    if name == "not" || ACCENTS.contains(&name) {
        return false;
    }
    let text = unicodeit::replace(command);
    !text.contains('\\') && !text.contains(|c: char| c.is_ascii_alphabetic())
}

/// Writes what has two dimensions in one, innermost first.
fn in_one_line(source: &str) -> String {
    let text = pattern!(r"\\\\(?:\[-?[0-9.]+ ?[a-z]{2}\])?").replace_all(source, "\n");
    let text = text.replace(r"\&", "\u{e004}").replace(r"\{", "\u{e002}").replace(r"\}", "\u{e003}");
    let text = text.replace(['&', '~'], " ");
    let text = pattern!(r"\\(?:left|right)\.").replace_all(&text, "");
    let text = pattern!(r"\\(?:left|right|big|Big|bigg|Bigg)([^a-zA-Z])").replace_all(&text, "$1");
    let text = pattern!(r"\\(?:quad|qquad|[,;:!> ])").replace_all(&text, " ");
    let text =
        pattern!(r"\\(?:text|mathrm|operatorname|mathit|boxed)\{([^{}\\]*)\}").replace_all(&text, "$1");
    let functions = pattern!(
        r"\\(arccos|arcsin|arctan|arg|cosh|cos|cot|csc|deg|det|dim|exp|gcd|inf|ker|lg|lim|ln|log|max|min|Pr|sec|sinh|sin|sup|tanh|tan)([^a-zA-Z]|$)"
    );
    let text = functions.replace_all(&text, "$1$2");
    let mut text =
        pattern!(r"\\(hat|bar|vec|ddot|dot|tilde)\{([a-zA-Z])\}").replace_all(&text, accented).into_owned();
    let fraction = pattern!(r"\\[dt]?frac\s*\{([^{}]*)\}\s*\{([^{}]*)\}");
    // Each round removes a level of braces.
    for _ in 0..MAX_BYTES {
        let next = pattern!(r"([\^_])\{([^{}]*)\}").replace_all(&text, script);
        let next = fraction.replace_all(&next, |parts: &Captures<'_>| {
            format!("{}/{}", grouped(&parts[1]), grouped(&parts[2]))
        });
        let next = pattern!(r"\\sqrt\s*(?:\[([34])\]\s*)?\{([^{}]*)\}").replace_all(&next, root).into_owned();
        if next == text {
            break;
        }
        text = next;
    }
    text
}

/// A square, cube or fourth root.
fn root(parts: &Captures<'_>) -> String {
    let sign = match parts.get(1).map(|degree| degree.as_str()) {
        Some("3") => '∛',
        Some("4") => '∜',
        _ => '√',
    };
    format!("{sign}{}", grouped(&parts[2]))
}

/// A letter with an accent.
fn accented(parts: &Captures<'_>) -> String {
    let mark = match &parts[1] {
        "hat" => '\u{302}',
        "bar" => '\u{304}',
        "vec" => '\u{20d7}',
        "ddot" => '\u{308}',
        "dot" => '\u{307}',
        _ => '\u{303}',
    };
    format!("{}{mark}", &parts[2])
}

/// A script without its braces: each character with its own mark if Unicode has all of them.
fn script(parts: &Captures<'_>) -> String {
    let (mark, text) = (&parts[1], &parts[2]);
    let (held, known) = if mark == "^" { ('\u{e000}', SUPERSCRIPTS) } else { ('\u{e001}', SUBSCRIPTS) };
    if !text.is_empty() && text.chars().all(|c| known.contains(c)) {
        return text.chars().flat_map(|c| [Cow::from(mark), Cow::from(c.to_string())]).collect();
    }
    format!("{held}{}", grouped(text))
}

/// A part of a formula, in parentheses unless it is one character, number or command.
fn grouped(part: &str) -> String {
    let part = part.trim();
    let is_single = part.chars().count() == 1
        || part.chars().all(|c| c.is_ascii_digit())
        || pattern!(r"^\\[a-zA-Z]+$").is_match(part);
    if is_single { part.to_owned() } else { format!("({part})") }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn formulas_become_text() {
        let check = |source: &str, expected: &str| {
            assert_eq!(unicode(source).as_deref(), Some(expected), "{source}");
        };
        check(r"E = mc^2", "E = mc²");
        check(r"\alpha + \beta_1 \leq \infty", "α + β₁ ≤ ∞");
        check(r"x_{ij}^{2n}", "xᵢⱼ²ⁿ");
        check(r"\sum_{i=1}^{n} i = \frac{n(n+1)}{2}", "∑ᵢ₌₁ⁿ i = (n(n+1))/2");
        check(r"\frac{a}{b}", "a/b");
        check(r"\sqrt{x+1} \approx \sqrt{2}", "√(x+1) ≈ √2");
        check(r"\frac{-b \pm \sqrt{b^2 - 4ac}}{2a}", "(−b ± √(b² − 4ac))/(2a)");
        check(r"e^{-x/2}", "e^(−x/2)");
        check(r"\left( \frac{1}{2} \right)", "( 1/2 )");
        check(r"\text{where } x \in \mathbb{R}", "where x ∈ ℝ");
        check("\\begin{aligned} a &= 1 \\\\ \\beta &= 2 \\end{aligned}", "a = 1\nβ = 2");
        check(r"O(n \log n)", "O(n log n)");
        check(r"\lim_{x \to 0} \frac{\sin x}{x} = 1", "lim_(x → 0) (sin x)/x = 1");
        check(r"\hat{x} + \vec{E}", "x\u{302} + E\u{20d7}");
        check(r"\sqrt[3]{x+1}", "∛(x+1)");
        check(r"R\&D \leq \left. x \right|_0", "R&D ≤ x |₀");
        check("\\begin{align*} a &= 1 \\\\[2pt] &\\leq 2 \\end{align*}", "a = 1\n≤ 2");
        check(r"\{1, 2\} \subset \mathbb{N}", "{1, 2} ⊂ ℕ");
    }

    #[test]
    fn what_is_no_formula_or_has_no_text_stays() {
        for source in [
            "5/US",
            "HOME",
            "{FOO}_",
            "PATH_A:",
            "x + y",
            r"\unknowncommand{x}",
            r"\label{x}",
            r"\overbrace{a+b}^{n}\substack{x}",
            r"\hat{ab}",
            r"f(x) = \begin{cases} 1 & x > 0 \\ 0 & \text{otherwise} \end{cases}",
            r"\begin{pmatrix} a & b \\ c & d \end{pmatrix}",
            r"\begin{aligned} x &= \begin{bmatrix} 1 \\ 2 \end{bmatrix} \end{aligned}",
            r"\begin{array}{cc} a & b \end{array}",
            r"\alpha & \beta",
            r"\sqrt[n]{x+1}",
            r"{a+1 \over b}",
            r"\binom{n}{k}",
            r"\overset{a}{b}",
            r"\stackrel{a}{=}",
            r"\underset{a}{b}",
            r"\phantom{a}",
            r"\cfrac{1}{2}",
            r"\tag{1}",
            r"a \choose b",
            r"\prod\limits_{i}^n",
            r"\underbrace{a+b}_{c}",
            r"\cancel{a}",
            r"\hat{a\alpha}",
            "",
            r"\",
            r"\frac{a",
        ] {
            assert_eq!(Some(source).filter(|source| is_formula(source)).and_then(unicode), None, "{source}");
        }
        assert_eq!(unicode(&r"\alpha".repeat(1_000)), None);
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(48))]
        #[test]
        fn any_text_is_survived(source in r"([\\a-z{}^_$&~\n 0-9世é]|\\hat\{|\\not|\\alpha|\\frac\{){0,30}") {
            unicode(&source);
        }
    }
}

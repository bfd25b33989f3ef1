//! Twice the input takes about twice the work, whatever somebody else wrote.
//!
//! Where work can be counted, other tests count it. Here it cannot: parsers of other crates do a part of
//! it. So these tests compare the processor time of this thread for an input and for twice that
//! input, which other programs on the machine hardly change. A quadratic step shows as a ratio of 4.

#![cfg(target_os = "linux")]
#![expect(clippy::unwrap_used, reason = "a test that cannot go on stops where it is")]

use std::hint::black_box;
use std::sync::LazyLock;
use std::time::Duration;

use pi::tui::markdown::{Highlighter, MarkdownOptions, render};
use pi::tui::theme::{Appearance, ColorDepth, Theme};

static THEME: LazyLock<Theme> =
    LazyLock::new(|| Theme::builtin("dark", Appearance::Dark, ColorDepth::True).unwrap());

/// The smaller input is as large as takes this long. The system counts in ticks of some milliseconds.
const LEAST: Duration = Duration::from_millis(60);
/// No input is larger.
const MAX_BYTES: usize = 2 << 20;
const MAX_RATIO: f64 = 2.8;

/// The time this thread has run.
fn thread_time() -> Duration {
    let text = std::fs::read_to_string("/proc/thread-self/schedstat").unwrap();
    Duration::from_nanos(text.split(' ').next().unwrap().parse().unwrap())
}

fn time_of(run: &impl Fn(&str), text: &str) -> Duration {
    let start = thread_time();
    run(text);
    thread_time().saturating_sub(start)
}

#[track_caller]
fn check(name: &str, input: impl Fn(usize) -> String, run: impl Fn(&str)) {
    let mut n = 250;
    while n < MAX_BYTES && input(2 * n).len() < MAX_BYTES && time_of(&run, &input(n)) < LEAST {
        n *= 2;
    }
    let (once, twice) = (input(n), input(2 * n));
    // Both in turn, so that a disturbance meets both; the least of each was disturbed least.
    let mut least = (Duration::MAX, Duration::MAX);
    for _ in 0..7 {
        least.0 = least.0.min(time_of(&run, &once));
        least.1 = least.1.min(time_of(&run, &twice));
    }
    let ratio = least.1.as_secs_f64() / least.0.as_secs_f64().max(0.01);
    assert!(
        ratio < MAX_RATIO,
        "{name}: {ratio:.2} times as long for {} bytes as for half of them",
        twice.len()
    );
}

fn draw(text: &str) {
    black_box(render(text, 80, &THEME, &Highlighter::new(), &MarkdownOptions::default()));
}

#[test]
fn markdown_of_any_nesting_takes_time_in_proportion_to_its_length() {
    let repeated = |piece: &'static str| move |n: usize| piece.repeat(n);
    let nested = |open: &'static str, close: &'static str| {
        move |n: usize| [&open.repeat(n), "x", &close.repeat(n)].concat()
    };
    check("images in links", nested("[![", "](a)](b)"), draw);
    check("links in links", nested("[", "](a)"), draw);
    check("images in images", nested("![", "](a)"), draw);
    check("open brackets", repeated("[!["), draw);
    check("closed brackets", repeated("](a)](b)"), draw);
    check("emphasis", nested("*a **b ", " c** d*"), draw);
    check("open emphasis", repeated("*a _b **c "), draw);
    check("open code", repeated("`a ``b "), draw);
    check("strikethrough", repeated("~~a ~b "), draw);
    check("references", repeated("[a][b] [c] "), draw);
    check("definitions", |n| (0..n).map(|at| format!("[{at}]: x\n[{at}] ")).collect(), draw);
    check("footnotes", |n| (0..n).map(|at| format!("[^{at}] ")).collect(), draw);
    check("html", repeated("<a href='"), draw);
    check("comments", repeated("<!-- "), draw);
    check("autolinks", repeated("<http://a"), draw);
    check("addresses", repeated("https://a.b/c?d "), draw);
    check("entities", repeated("&amp"), draw);
    check("escapes", repeated(r"\[\*\`"), draw);
    check("formulas", repeated("$a ($b\\) "), draw);
    check("fractions", nested(r"$\frac{", "}{b}$"), draw);
    check("quotes", |n| "> ".repeat(n) + &"a ".repeat(n), draw);
    check("lists", repeated("- a\n  - b\n"), draw);
    check("one item", |n| "- ".to_owned() + &"word ".repeat(n), draw);
    check("table", |n| format!("|a|b|\n|-|-|\n{}", "|c|d|\n".repeat(n)), draw);
    check("wide table", |n| format!("|{}\n|{}\n", "a|".repeat(n), "-|".repeat(n)), draw);
    check("one line of Chinese", repeated("汉字**粗体。**后面"), draw);
}

//! What the fuzz targets check, over their seeds and changed copies of them. The
//! changes are drawn from a fixed seed, so a failure is one for good.

#![expect(clippy::unwrap_used, reason = "a test ends where something is not as it must be")]

use std::fs;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::Path;
use std::time::Duration;

use pi::util::clock::Clock;

#[path = "../../fuzz/checks.rs"]
mod checks;

/// Changed copies per target.
const N_COPIES: usize = 1_000;
/// No input of this size is worth more.
const PATIENCE: Duration = Duration::from_secs(5);
const MAX_BYTES: usize = 16 << 10;

/// Fragments that parsers often fail on.
const TOKENS: &[&[u8]] = &[
    b"\"",
    b"\\",
    b"{",
    b"}",
    b"[",
    b"]",
    b":",
    b",",
    b"null",
    b"true",
    b"-1",
    b"1e308",
    b"0.5",
    b"18446744073709551616",
    b"4294967295",
    b"\\ud83d",
    b"\\u0000",
    b"\\q",
    b"\xff",
    b"\xf0\x9f",
    b"\x00",
    b"\n",
    b"\r",
    b"\n\n",
    b"\r\n\r\n",
    b"data: ",
    b"data: [DONE]\n\n",
    b"event: error\n",
    b": ",
    b"\xef\xbb\xbf",
    b"\"index\":4294967295,",
    b"\"type\":null,",
    b"\"content\":{},",
    b"\"error\":{\"message\":[]},",
    b"\"id\":7,",
    b"{\"error\":{}}\n",
    b"[[[[[[[[[[[[[[[[",
    b"data: {}\n\n",
    b"data: []\n\n",
    b"data: 7\n\n",
];

/// The same for what terminals, processes and models write.
const TEXT_TOKENS: &[&[u8]] = &[
    b"\x1b",
    b"\x1b[",
    b"\x1b[0m",
    b"\x1b[38;5;",
    b"\x1b[200~",
    b"\x1b[201~",
    b"\x1b[<0;1;1M",
    b"\x1b]8;;",
    b"\x1b\\",
    b"\x07",
    b"\xc2\x9b",
    b"\x00",
    b"\xff",
    b"\xf0\x9f",
    b"\xcc\x81",
    b"\xe2\x80\x8d",
    b"\xe4\xb8\x96",
    b"\r",
    b"\r\n",
    b"\n\n",
    b"\t",
    b"    ",
    b"```\n",
    b"~~~",
    b"- ",
    b"1. ",
    b"> ",
    b"# ",
    b"|",
    b"|-|-|\n",
    b"**",
    b"`",
    b"[",
    b"](",
    b"<div>",
    b"<!--",
    b"$",
    b"\n---\n",
    b"\\",
    b"&amp;",
];

/// <https://prng.di.unimi.it/splitmix64.c>.
struct Random(u64);

impl Random {
    fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mixed = (self.0 ^ (self.0 >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        let mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        mixed ^ (mixed >> 31)
    }

    /// A number below `bound`; 0 if there is none.
    fn below(&mut self, bound: usize) -> usize {
        usize::try_from(self.next() % (bound.max(1) as u64)).unwrap()
    }

    fn range(&mut self, len: usize) -> std::ops::Range<usize> {
        let start = self.below(len + 1);
        let longest = (len - start).min(64);
        start..start + self.below(longest + 1)
    }

    /// A copy of a seed, changed in a few places.
    fn changed(&mut self, seeds: &[Vec<u8>], tokens: &[&[u8]]) -> Vec<u8> {
        let mut bytes = seeds[self.below(seeds.len())].clone();
        for _ in 0..=self.below(4) {
            self.change(&mut bytes, seeds, tokens);
        }
        bytes.truncate(MAX_BYTES);
        bytes
    }

    fn change(&mut self, bytes: &mut Vec<u8>, seeds: &[Vec<u8>], tokens: &[&[u8]]) {
        let range = self.range(bytes.len());
        match self.below(8) {
            0 => {
                if let Some(byte) = bytes.get_mut(range.start) {
                    *byte ^= 1 << self.below(8);
                }
            }
            1 => bytes.insert(range.start, u8::try_from(self.below(256)).unwrap()),
            2 => drop(bytes.drain(range)),
            3 => {
                let copy = bytes[range].to_vec();
                let at = self.below(bytes.len() + 1);
                bytes.splice(at..at, copy);
            }
            4 | 5 => {
                let token = tokens[self.below(tokens.len())];
                let replaced = if self.below(2) == 0 { range.start..range.start } else { range };
                bytes.splice(replaced, token.iter().copied());
            }
            6 => {
                let other = &seeds[self.below(seeds.len())];
                let tail = other[self.below(other.len() + 1)..].to_vec();
                bytes.truncate(range.start);
                bytes.extend(tail);
            }
            _ => bytes.truncate(range.start),
        }
    }
}

fn seeds(target: &str) -> Vec<Vec<u8>> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("fuzz/seeds").join(target);
    let mut paths: Vec<_> = fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path()).collect();
    paths.sort();
    assert!(paths.len() > 4, "{target} begins with next to nothing");
    paths.iter().map(|path| fs::read(path).unwrap()).collect()
}

fn run(target: &str, check: fn(&[u8])) {
    run_with(target, TOKENS, check);
}

fn run_with(target: &str, tokens: &[&[u8]], check: fn(&[u8])) {
    let seeds = seeds(target);
    let mut random = Random(target.bytes().fold(7, |seed, byte| seed * 31 + u64::from(byte)));
    let copies: Vec<Vec<u8>> = (0..N_COPIES).map(|_| random.changed(&seeds, tokens)).collect();
    let clock = Clock::system();
    for bytes in seeds.iter().chain(&copies) {
        let begun = clock.monotonic();
        let outcome = catch_unwind(AssertUnwindSafe(|| check(bytes)));
        let taken = clock.monotonic() - begun;
        let text = String::from_utf8_lossy(bytes);
        assert!(outcome.is_ok(), "{target} fails on {bytes:?}, which is {text:?}");
        assert!(taken < PATIENCE, "{target} takes {taken:?} for {text:?}");
    }
}

#[test]
fn any_bytes_are_framed() {
    run("framing", checks::framing);
}

#[test]
fn any_arguments_are_read() {
    run("partial_json", checks::partial_json);
}

#[test]
fn any_stream_of_anthropic_is_survived() {
    run("anthropic", checks::anthropic);
}

#[test]
fn any_stream_of_chat_is_survived() {
    run("chat", checks::chat);
}

#[test]
fn any_stream_of_responses_is_survived() {
    run("responses", checks::responses);
}

#[test]
fn any_stream_of_google_is_survived() {
    run("google", checks::google);
}

#[test]
fn any_stream_of_bedrock_is_survived() {
    run("bedrock", checks::bedrock);
}

#[test]
fn any_bytes_of_a_terminal_are_read() {
    run_with("input", TEXT_TOKENS, checks::input);
}

#[test]
fn any_output_of_processes_is_shown() {
    run_with("ansi", TEXT_TOKENS, checks::ansi);
}

#[test]
fn any_markdown_is_shown_as_it_would_be_at_once() {
    run_with("markdown", TEXT_TOKENS, checks::markdown);
}

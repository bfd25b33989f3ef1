//! Writes sessions like real ones, of any length: the same text for the same size.
//!
//! Turns of a prompt, an answer that thinks and calls tools, long results and a closing
//! answer with usage; a few branches that were left, compactions, labels, images.
//! Shared by tests, benches and the example `long_session`; uses nothing of the library.

use std::fmt::Write as _;
use std::fs::File;
use std::io::{self, BufWriter, Write as _};
use std::path::Path;

/// The size and the contents of a session.
#[derive(Debug, Clone, Copy)]
pub(crate) struct LongSession {
    pub(crate) n_messages: usize,
    /// Average length of a message's line.
    pub(crate) message_bytes: usize,
    /// Messages between two compactions; 0 for none.
    pub(crate) compact_every: usize,
    /// Messages between two branches that are left; 0 for none.
    pub(crate) branch_every: usize,
    /// Messages between two results with an image of about 48 KB; 0 for none.
    pub(crate) image_every: usize,
}

impl LongSession {
    /// One with everything.
    pub(crate) fn new(n_messages: usize, message_bytes: usize) -> Self {
        Self { n_messages, message_bytes, compact_every: 600, branch_every: 250, image_every: 400 }
    }

    /// One branch, no images: every message is part of the next request.
    pub(crate) fn plain(n_messages: usize, message_bytes: usize) -> Self {
        Self { compact_every: 0, branch_every: 0, image_every: 0, ..Self::new(n_messages, message_bytes) }
    }

    /// Writes the session to `path`. `cwd` is the directory it works in.
    pub(crate) fn write(&self, path: &Path, id: &str, cwd: &str) -> io::Result<()> {
        let mut file = BufWriter::with_capacity(1 << 20, File::create(path)?);
        self.write_to(&mut file, id, cwd)?;
        file.flush()
    }

    fn write_to(&self, out: &mut dyn io::Write, id: &str, cwd: &str) -> io::Result<()> {
        writeln!(
            out,
            r#"{{"type":"session","version":3,"id":"{id}","timestamp":"2026-11-21T09:23:47.280Z","cwd":"{cwd}"}}"#
        )?;
        let mut writer = Writer { out, size: *self, n_entries: 0, leaf: None, noise: Noise(0x9e37_79b9) };
        writer.start()?;
        let mut recent: Vec<usize> = Vec::new();
        for at in 0..self.n_messages {
            let is_due = |every: usize| every > 0 && at > 8 && at % every == 0;
            if is_due(self.branch_every) {
                // Continues a few turns above; what was said since is left behind.
                writer.leaf = recent.get(recent.len().saturating_sub(7)).copied().or(writer.leaf);
            }
            if is_due(self.compact_every) {
                let kept = recent[recent.len().saturating_sub(6)];
                writer.compaction(kept, at)?;
            }
            writer.message(at, is_due(self.image_every))?;
            recent.push(writer.n_entries - 1);
            if recent.len() > 64 {
                recent.drain(..32);
            }
        }
        Ok(())
    }
}

struct Writer<'o> {
    out: &'o mut dyn io::Write,
    size: LongSession,
    n_entries: usize,
    leaf: Option<usize>,
    noise: Noise,
}

impl Writer<'_> {
    fn start(&mut self) -> io::Result<()> {
        self.entry("model_change", r#""provider":"acme","modelId":"m-1""#)?;
        self.entry("thinking_level_change", r#""thinkingLevel":"medium""#)?;
        self.entry(
            "message",
            r#""message":{"role":"system","content":"","sections":{"preamble":"You are an agent."},"timestamp":1,"toolsAdded":[{"name":"read","description":"Reads a file","parameters":{"type":"object","properties":{"path":{"type":"string"}}}}]}"#,
        )
    }

    /// Turns of six messages: prompt, call, result, call, result, answer.
    fn message(&mut self, at: usize, has_image: bool) -> io::Result<()> {
        // Results are long, everything else is short.
        let long = (self.size.message_bytes * 3).saturating_sub(1_600).max(200);
        let message = match at % 6 {
            0 => {
                let text = self.noise.prose(40);
                format!(r#"{{"role":"user","content":[{{"type":"text","text":"{text}"}}],"timestamp":{at}}}"#)
            }
            1 | 3 => {
                let text = self.noise.prose(30);
                self.answer(
                    at,
                    "toolUse",
                    &format!(
                        r#"{{"type":"thinking","thinking":"{text}","thinkingSignature":"c2lnbmF0dXJl"}},{{"type":"toolCall","id":"call_{at}","name":"read","arguments":{{"path":"src/part{at}.rs"}}}}"#
                    ),
                )
            }
            2 | 4 => {
                let text = self.noise.code(long);
                let image = if has_image { self.noise.image() } else { String::new() };
                format!(
                    r#"{{"role":"toolResult","toolCallId":"call_{}","toolName":"read","content":[{{"type":"text","text":"{text}"}}{image}],"isError":false,"durationMs":12,"timestamp":{at}}}"#,
                    at - 1
                )
            }
            _ => {
                let text = self.noise.prose(80);
                self.answer(at, "stop", &format!(r#"{{"type":"text","text":"{text}"}}"#))
            }
        };
        self.entry("message", &format!(r#""message":{message}"#))?;
        if at % 500 == 499 {
            let target = self.n_entries - 1;
            self.entry("label", &format!(r#""targetId":"{target:08x}","label":"step {at}""#))?;
        }
        Ok(())
    }

    fn answer(&mut self, at: usize, reason: &str, content: &str) -> String {
        let input = 1_000 + at % 5_000;
        format!(
            r#"{{"role":"assistant","content":[{content}],"api":"anthropic-messages","provider":"acme","model":"m-1","usage":{{"input":{input},"output":234,"cacheRead":{at},"cacheWrite":0,"totalTokens":{},"cost":{{"input":0.004,"output":0.003,"cacheRead":0,"cacheWrite":0,"total":0.007}}}},"stopReason":"{reason}","timestamp":{at},"responseId":"r{at}","durationMs":38,"thinkingLevel":"medium"}}"#,
            input + 234 + at
        )
    }

    fn compaction(&mut self, kept: usize, at: usize) -> io::Result<()> {
        let summary = self.noise.prose(300);
        self.entry(
            "compaction",
            &format!(
                r#""summary":"{summary}","firstKeptEntryId":"{kept:08x}","tokensBefore":{at},"details":{{"readFiles":["src/part1.rs"],"modifiedFiles":[]}},"fromHook":false"#
            ),
        )
    }

    fn entry(&mut self, kind: &str, fields: &str) -> io::Result<()> {
        let parent = self.leaf.map_or("null".to_owned(), |leaf| format!("\"{leaf:08x}\""));
        let id = self.n_entries;
        self.n_entries += 1;
        self.leaf = Some(id);
        writeln!(
            self.out,
            r#"{{"type":"{kind}","id":"{id:08x}","parentId":{parent},"timestamp":"2026-11-21T09:23:47.445Z",{fields}}}"#
        )
    }
}

/// Numbers that look like chance and are the same every time.
struct Noise(u32);

impl Noise {
    fn next(&mut self, below: usize) -> usize {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 17;
        self.0 ^= self.0 << 5;
        self.0 as usize % below
    }

    fn prose(&mut self, n_words: usize) -> String {
        const WORDS: [&str; 16] = [
            "the",
            "parser",
            "keeps",
            "offset",
            "of",
            "every",
            "line",
            "it",
            "has",
            "seen",
            "und",
            "größer",
            "file",
            "tests",
            "\\\"fails\\\"",
            "because",
        ];
        let mut text = String::new();
        for _ in 0..n_words {
            let word = WORDS[self.next(WORDS.len())];
            let _infallible = write!(text, "{word}{}", if self.next(14) == 0 { ".\\n" } else { " " });
        }
        text
    }

    /// Lines of a program as a tool returns them, with escapes, at least `n_bytes` long.
    fn code(&mut self, n_bytes: usize) -> String {
        const LINES: [&str; 6] = [
            "    let offset = lines.iter().map(|line| line.len()).sum::<usize>();",
            "    if let Some(found) = table.get(\\\"name\\\") {",
            "        return Err(Error::new(\\\"not found\\\"));",
            "    }",
            "",
            "/// Liest eine Zeile – auch die größte.",
        ];
        // Results differ in length by a factor of three.
        let n_bytes = n_bytes / 2 + self.next(n_bytes + 1);
        let mut text = String::with_capacity(n_bytes + 100);
        let mut number = self.next(900);
        while text.len() < n_bytes {
            number += 1;
            let line = LINES[self.next(LINES.len())];
            let _infallible = write!(text, "{number:>5}\\t{line}\\n");
        }
        text
    }

    /// A block with a PNG of one pixel, followed by bytes that no reader looks at.
    fn image(&mut self) -> String {
        const PIXEL: &str =
            "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJg";
        const DIGITS: &[u8; 64] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
        let mut data = PIXEL.to_owned();
        data.extend((0..48 << 10).map(|_| char::from(DIGITS[self.next(64)])));
        format!(r#",{{"type":"image","data":"{data}","mimeType":"image/png"}}"#)
    }
}

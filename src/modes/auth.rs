//! Keys and sign-ins in a shell: a table, a hidden key prompt, the steps of
//! a sign-in. `config` stores the results.

use std::io::{self, BufRead as _, Read as _};
use std::process::ExitCode;
use std::thread;

use anyhow::Context as _;
use serde_json::{Value, json};
use tokio::sync::mpsc;

use crate::config::{Accounts, KeySource, ProviderKeys, Secret, SignInPrompt, SignInRequest, SignInStep};
use crate::util::os::HiddenInput;

use super::output::{write_err, write_out};
use super::table::{Align, aligned};

/// Maximum size of a piped key.
const KEY_LIMIT_BYTES: u64 = 64 << 10;

/// Prints the source of each provider's key, providers with a key first. Exit
/// code 1 if the key file cannot be read, as `problem` describes.
pub fn auth_status(providers: &[ProviderKeys], problem: Option<&str>, now_ms: u64, json: bool) -> ExitCode {
    if let Some(problem) = problem {
        write_err(&format!("pi: {problem}"));
    }
    let mut providers: Vec<&ProviderKeys> = providers.iter().collect();
    providers.sort_by_key(|provider| provider.source == KeySource::None);
    if json {
        let providers: Vec<Value> = providers.into_iter().map(status_json).collect();
        write_out(&format!("{:#}\n", Value::from(providers)));
    } else {
        write_out(&status_table(&providers, now_ms));
    }
    if problem.is_some() { ExitCode::from(1) } else { ExitCode::SUCCESS }
}

fn status_json(provider: &ProviderKeys) -> Value {
    let (source, expires) = match provider.source {
        KeySource::SignedIn { expires_ms } => (provider.source.id(), Some(expires_ms)),
        KeySource::CommandLine
        | KeySource::Stored
        | KeySource::Unusable
        | KeySource::ModelsFile
        | KeySource::Environment(_)
        | KeySource::Cloud
        | KeySource::NotNeeded
        | KeySource::None => (provider.source.id(), None),
    };
    let variable = match provider.source {
        KeySource::Environment(name) => Some(name),
        _ => None,
    };
    json!({
        "provider": provider.id,
        "name": provider.name,
        "source": source,
        "variable": variable,
        "stored": provider.is_stored,
        "expires": expires,
    })
}

fn status_table(providers: &[&ProviderKeys], now_ms: u64) -> String {
    let header = ["provider", "key", "token ends"].map(str::to_owned).to_vec();
    let rows = providers.iter().map(|provider| {
        let ends = match provider.source {
            KeySource::SignedIn { expires_ms } => remaining(expires_ms, now_ms),
            _ => String::new(),
        };
        vec![provider.id.clone(), provider.source.to_string(), ends]
    });
    let rows: Vec<Vec<String>> = std::iter::once(header).chain(rows).collect();
    aligned(&rows, |_| Align::Left).into_iter().map(|line| line + "\n").collect()
}

/// The remaining lifetime of a token. An expired one is renewed on use.
fn remaining(expires_ms: u64, now_ms: u64) -> String {
    let minutes = expires_ms.saturating_sub(now_ms) / 60_000;
    match minutes {
        0 => "renewed at next use".to_owned(),
        1..120 => format!("in {minutes} min"),
        120..2_880 => format!("in {} h", minutes / 60),
        _ => format!("in {} days", minutes / 1_440),
    }
}

/// Prints a line for the user on standard output.
pub fn say(text: &str) {
    write_out(&format!("{text}\n"));
}

/// Reads a key: from the terminal without echo, or all of standard input.
///
/// # Errors
/// If standard input cannot be read, or the user pressed ctrl+c.
pub fn read_key(provider: &str, is_terminal: bool) -> anyhow::Result<Secret> {
    if is_terminal {
        let typed = read_hidden(&format!("Key for {provider} (not shown): "))?;
        return Ok(Secret::typed(&typed));
    }
    let mut bytes = Vec::new();
    let read = io::stdin().lock().take(KEY_LIMIT_BYTES).read_to_end(&mut bytes);
    read.context("cannot read standard input")?;
    Ok(Secret::typed(&String::from_utf8_lossy(&bytes)))
}

/// Reads a line from the terminal key by key: with the terminal's own line editing,
/// ctrl+c would end the program and leave the echo off.
fn read_hidden(prompt: &str) -> anyhow::Result<String> {
    let input = HiddenInput::start().context("cannot turn off the terminal's echo")?;
    write_out(prompt);
    let line = read_line(|| input.next_byte());
    drop(input);
    write_out("\n");
    line.context("no key entered; nothing was saved")
}

/// The bytes of an edited line; `None` if it was cancelled.
fn read_line(mut next: impl FnMut() -> Option<u8>) -> Option<String> {
    const CTRL_C: u8 = 3;
    const CTRL_D: u8 = 4;
    const CTRL_U: u8 = 21;
    let mut line: Vec<u8> = Vec::new();
    loop {
        match next()? {
            b'\r' | b'\n' => return Some(String::from_utf8_lossy(&line).into_owned()),
            CTRL_C => return None,
            CTRL_D if line.is_empty() => return None,
            CTRL_U => line.clear(),
            // Delete all bytes of a character.
            8 | 127 => while line.pop().is_some_and(|byte| byte & 0xc0 == 0x80) {},
            byte if line.len() < 16_384 => line.push(byte),
            _ => {}
        }
    }
}

/// Signs in, printing the steps to standard error. Lines typed in the terminal count as
/// pasted text.
///
/// # Errors
/// Why the user is not signed in.
pub async fn sign_in(accounts: &Accounts, request: SignInRequest, is_terminal: bool) -> anyhow::Result<()> {
    let provider = request.provider.clone();
    let (steps, mut told) = mpsc::unbounded_channel();
    let (paste, pasted) = mpsc::unbounded_channel();
    let mut paste = is_terminal.then_some(paste);
    let signing_in = accounts.sign_in(request, SignInPrompt { steps, pasted });
    tokio::pin!(signing_in);
    let ended = loop {
        tokio::select! {
            biased;
            Some(step) = told.recv() => {
                tell(&step, is_terminal);
                if matches!(step, SignInStep::Browser { .. })
                    && let Some(paste) = paste.take()
                {
                    // Ends with the program, because a blocking read of the terminal cannot be cancelled.
                    let reading = thread::Builder::new().name("paste".to_owned());
                    if let Err(error) = reading.spawn(move || read_lines(&paste)) {
                        write_err(&format!("pi: cannot read pasted input: {error}"));
                    }
                }
            }
            ended = &mut signing_in => break ended,
        }
    };
    ended.with_context(|| format!("cannot sign in to {provider}"))?;
    write_err(&format!("You are signed in to {provider}."));
    Ok(())
}

fn tell(step: &SignInStep, is_terminal: bool) {
    match step {
        SignInStep::Browser { url } => {
            write_err(&format!("Open this address in your browser:\n\n{url}\n"));
            if is_terminal {
                write_err("If the browser is on another machine, paste the address it ends at here.");
            }
        }
        SignInStep::Device { url, code } => {
            write_err(&format!("Open {url} in any browser and enter this code: {code}"));
        }
        SignInStep::Progress(text) | SignInStep::Problem(text) => write_err(text),
    }
}

fn read_lines(paste: &mpsc::UnboundedSender<Secret>) {
    for line in io::stdin().lock().lines() {
        let Ok(line) = line else { return };
        if !line.trim().is_empty() && paste.send(Secret::typed(&line)).is_err() {
            return;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_are_edited_without_being_shown() {
        let check = |bytes: &str, expected: Option<&str>| {
            let mut bytes = bytes.bytes();
            assert_eq!(read_line(|| bytes.next()).as_deref(), expected);
        };
        check("key\r", Some("key"));
        check("kex\u{7f}y\n", Some("key"));
        check("é\u{7f}\u{7f}k\n", Some("k"));
        check("wrong\u{15}key\n", Some("key"));
        check("key\u{3}", None);
        check("\u{4}", None);
        check("key", None);
    }

    #[test]
    fn the_table_says_where_keys_are_and_when_tokens_end() {
        let provider = |id: &str, source: KeySource| ProviderKeys {
            id: id.to_owned(),
            name: id.to_owned(),
            source,
            is_stored: false,
            is_known: true,
        };
        let providers = [
            provider("openai", KeySource::SignedIn { expires_ms: 3_600_000 }),
            provider("groq", KeySource::Environment("GROQ_API_KEY")),
        ];
        let providers: Vec<&ProviderKeys> = providers.iter().collect();
        insta::assert_snapshot!(status_table(&providers, 60_000), @r"
        provider  key                  token ends
        openai    signed in            in 59 min
        groq      key in GROQ_API_KEY
        ");
        let shown = [0, 60_000, 7_300_000, 864_000_000].map(|ms| remaining(ms, 0));
        assert_eq!(shown, ["renewed at next use", "in 1 min", "in 2 h", "in 10 days"]);
    }
}

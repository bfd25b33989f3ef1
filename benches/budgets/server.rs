//! A model server whose answers take the time of a real one.
//!
//! It speaks Chat Completions and answers by what the last prompt begins with, so that one server
//! serves all measurements.

use std::io::{BufRead as _, BufReader, Read as _, Write as _};
use std::net::{TcpListener, TcpStream};
use std::sync::LazyLock;
use std::thread;
use std::time::Duration;

use serde_json::Value;

use crate::support::chat;

/// Begins the last word of each answer, which the first word of the prompt follows.
pub(crate) const END: &str = "END-OF-";

/// Begins the prompt for an answer at the pace of a fast model.
pub(crate) const TRICKLE: &str = "trickle";
/// Begins the prompt for 2,000 tokens at once.
pub(crate) const BURST: &str = "burst";
/// Begins the prompt for a long answer with code in three languages.
pub(crate) const CODE: &str = "code";

pub(crate) const TRICKLE_TOKENS: u32 = 1_500;
const BURST_TOKENS: u32 = 2_000;
/// 150 tokens per second.
const TOKEN_TIME: Duration = Duration::from_micros(6_667);

/// A block of code in each language of a usual answer.
const BLOCKS: [&str; 3] = [
    "```rust\nfn main() {\n    let x: Vec<u32> = (0..10).map(|n| n * 2).collect();\n    println!(\"{x:?}\");\n}\n```\n",
    "```python\ndef f(a, b=1):\n    \"\"\"Doc.\"\"\"\n    return [x ** 2 for x in range(a) if x % b == 0]\n```\n",
    "```ts\nexport const f = async (a: string): Promise<number> => {\n  return (await fetch(`/x/${a}`)).status;\n};\n```\n",
];

/// Made before it is asked for, so that no time of the program is the server's.
static AT_ONCE: LazyLock<String> =
    LazyLock::new(|| (0..BURST_TOKENS).map(|n| chat::delta(&word(n))).collect());

/// Serves until the bench ends; returns the base URL.
pub(crate) fn start() -> String {
    let listener = TcpListener::bind("127.0.0.1:0").expect("the system has a free port");
    LazyLock::force(&AT_ONCE);
    let address = listener.local_addr().expect("it listens");
    thread::spawn(move || {
        for connection in listener.incoming().flatten() {
            // A connection that breaks off is the end of a measurement.
            thread::spawn(move || drop(serve(connection)));
        }
    });
    format!("http://{address}/v1")
}

fn serve(connection: TcpStream) -> std::io::Result<()> {
    connection.set_nodelay(true)?;
    let mut requests = BufReader::new(connection.try_clone()?);
    let mut out = connection;
    loop {
        let mut length = 0;
        loop {
            let mut line = String::new();
            if requests.read_line(&mut line)? == 0 {
                return Ok(());
            }
            if let Some((name, value)) = line.split_once(':')
                && name.eq_ignore_ascii_case("content-length")
            {
                length = value.trim().parse().unwrap_or_default();
            }
            if line.trim().is_empty() {
                break;
            }
        }
        let mut body = vec![0; length];
        requests.read_exact(&mut body)?;
        out.write_all(
            b"HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\ntransfer-encoding: chunked\r\n\r\n",
        )?;
        // As services do, a piece is one write: without it, each would arrive as four packets.
        answer(&last_prompt(&body), |piece: &str| {
            out.write_all(format!("{:x}\r\n{piece}\r\n", piece.len()).as_bytes())
        })?;
        out.write_all(b"0\r\n\r\n")?;
    }
}

fn answer(prompt: &str, mut send: impl FnMut(&str) -> std::io::Result<()>) -> std::io::Result<()> {
    if prompt.starts_with(TRICKLE) {
        for n in 0..TRICKLE_TOKENS {
            thread::sleep(TOKEN_TIME);
            send(&chat::delta(&word(n)))?;
        }
    } else if prompt.starts_with(BURST) {
        send(&AT_ONCE)?;
    } else if prompt.starts_with(CODE) {
        let parts = (0..24).map(|n| format!("Part {n}:\n\n{}\n", BLOCKS[n % BLOCKS.len()]));
        send(&chat::delta(&parts.collect::<String>()))?;
    }
    send(&[chat::delta(&format!("\n\n{END}{prompt}")), chat::end("stop")].concat())
}

/// A token of prose in lower case, with a paragraph now and then.
fn word(n: u32) -> String {
    match n % 40 {
        39 => "of code.\n\n".to_owned(),
        n if n % 7 == 3 => "`value` ".to_owned(),
        n => ["the ", "parser ", "keeps ", "an ", "offset "][n as usize % 5].to_owned(),
    }
}

fn last_prompt(body: &[u8]) -> String {
    let body: Value = serde_json::from_slice(body).unwrap_or_default();
    let messages = body["messages"].as_array().map(Vec::as_slice).unwrap_or_default();
    let content = messages.iter().rfind(|message| message["role"] == "user").map(|last| &last["content"]);
    let text = content.and_then(|content| content.as_str().or_else(|| content[0]["text"].as_str()));
    text.unwrap_or_default().to_owned()
}

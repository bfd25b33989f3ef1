//! Sessions the original wrote.

use std::fs;

use crate::session::Entry;

use super::*;

/// The session in a fixture, opened.
fn open(name: &str) -> TranscriptStage {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/fixtures/sessions").join(name);
    let text = fs::read_to_string(path).unwrap();
    let tail = text.lines().skip(1).map(|line| Arc::new(Entry::parse(line).unwrap())).collect();
    let mut stage = TranscriptStage::new();
    stage
        .transcript
        .open(&Opened { tail, n_earlier: Some(0), ..Opened::default() }, Path::new("/home/user/project"));
    stage
}

#[test]
fn every_fixture_is_shown_at_every_width() {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/fixtures/sessions");
    let mut n_files = 0;
    for file in fs::read_dir(folder).unwrap() {
        let name = file.unwrap().file_name().into_string().unwrap();
        if !name.ends_with(".jsonl") {
            continue;
        }
        n_files += 1;
        let mut stage = open(&name);
        for expanded in [false, true] {
            stage.expanded(expanded);
            for width in [1, 2, 9, 40, 200] {
                assert!(!stage.text(width).is_empty(), "{name}");
                assert_eq!(stage.transcript.stable(), stage.transcript.len(), "{name}");
            }
        }
    }
    assert!(n_files > 10);
}

#[test]
fn calls_are_joined_with_their_results() {
    insta::assert_snapshot!(open("tools3.jsonl").text(60), @"
    |
    |
    | SCN:tools n=3 parallel=1
    |
    |
    | Let me look at that.
    |
    |
    | read README.md
    |
    |
    |
    | $ echo tool 1
    |
    | tool 1
    |
    | Took 0.0s
    |
    |
    |
    | $ ls -la .
    |
    | … (1 earlier line, ctrl+o to expand)
    | drwxr-xr-x 4 root root 4096 Nov 21 10:24 .
    | drwxr-xr-x 4 root root 4096 Nov 21 10:24 ..
    | drwxr-xr-x 7 root root 4096 Nov 21 10:24 .git
    | -rw-r--r-- 1 root root   25 Nov 21 10:24 README.md
    | drwxr-xr-x 2 root root 4096 Nov 21 10:24 src
    |
    | Took 0.0s
    |
    |
    | Is Border Palette
    |
    | Entry the parser parser delete parser socket event
    | entry_the() cursor. Insert scroll stream glyph margin
    | memory width handler page query throughput the render.
    | Extract of delete render refactor quickly snapshot field
    |
    | ZZEND0ZZ
    ");
}

#[test]
fn commands_of_the_user_are_shown() {
    insta::assert_snapshot!(open("rpc-bash.jsonl").text(40), @"
    |
    | │ $ echo one; echo two
    | │
    | │ one
    | │ two
    |
    | │ $ exit 3
    | │
    | │ ✗ Command exited with code 3
    |
    | │ $ echo hidden (not shown to the
    | │ model)
    | │
    | │ hidden
    |
    |
    | SCN:text tokens=8
    |
    |
    | Is Border Palette
    |
    | Entry
    |
    | ZZEND0ZZ
    ");
}

#[test]
fn a_failed_request_is_shown() {
    insta::assert_snapshot!(open("err429.jsonl").text(60), @r#"
    |
    |
    | SCN:err code=429 times=1
    |
    |
    | Error: acme: 429: {"message":"fake
    | 429","type":"rate_limit_exceeded","code":"rate_limit_excee
    | ded"}
    |
    | Is Border Palette
    |
    | Entry the parser parser delete parser socket event
    | entry_the() cursor. Insert scroll stream glyph margin
    | memory width handler page query throughput the render.
    | Extract of delete render refactor quickly snapshot field
    | cost width height terminal insert. Width snapshot field
    | variable of it cost response as glyph this schema however
    | to height by field. Cluster refactor of merge block
    | carefully or a usually scroll delete cluster_refactor()
    | theme shard by variable layout.
    |
    | - Latency that insert rename not while agent dirty be
    |   follower page insert it theme response palette.
    | - Scroll update terminal quickly render therefore of
    |   branch dirty query snapshot merge latency token for at.
    | - Height are that commit session padding palette height
    |   palette buffer.
    | - Usually scroll render dirty are merge
    |
    | ZZEND0ZZ
    "#);
}

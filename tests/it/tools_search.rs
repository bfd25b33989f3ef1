//! `grep` and `find` on a tree of files.
#![expect(clippy::unwrap_used, reason = "a helper of tests may fail the test")]

use std::fs;

use pi::ai::join_text;
use serde_json::{Value, json};

use crate::support::files::make_fifo;
use crate::tools_support::Workbench;

/// A repository with ignored, hidden and binary files.
fn tree() -> Workbench {
    let bench = Workbench::new();
    fs::create_dir(bench.path(".git")).unwrap();
    bench.write(".git/config", "needle in git\n");
    bench.write(".gitignore", "target/\n*.log\n");
    bench.write("target/out.rs", "needle\n");
    bench.write("a.log", "needle\n");
    bench.write(".env", "needle=1\n");
    bench.write("bin.dat", b"\x7fELF\x02\x01\0\0\0\xff\xfe needle\0\n");
    bench.write("src/lib.rs", "one\ntwo\nneedle three\nfour\nfive\n");
    bench.write("src/deep/mod.rs", "Needle\r\n");
    bench
}

#[track_caller]
fn check(text: &str, expected: &[&str]) {
    assert_eq!(text, expected.join("\n"));
}

#[tokio::test]
async fn grep_searches_hidden_but_not_ignored_files() {
    let bench = tree();
    let text = bench.text("grep", json!({ "pattern": "needle" })).await;
    check(&text, &[".env:1: needle=1", "src/lib.rs:3: needle three"]);
}

#[tokio::test]
async fn grep_options() {
    let bench = tree();
    let check_with = async |arguments: Value, expected: &[&str]| {
        check(&bench.text("grep", arguments).await, expected);
    };
    check_with(
        json!({ "pattern": "NEEDLE", "ignoreCase": true, "path": "src" }),
        &["deep/mod.rs:1: Needle", "lib.rs:3: needle three"],
    )
    .await;
    check_with(json!({ "pattern": "need.e", "glob": "*.rs" }), &["src/lib.rs:3: needle three"]).await;
    check_with(json!({ "pattern": "need.e", "glob": "./src/*.rs" }), &["src/lib.rs:3: needle three"]).await;
    check_with(json!({ "pattern": "needle", "glob": "!./src/**" }), &[".env:1: needle=1"]).await;
    check_with(json!({ "pattern": "need.e", "literal": true }), &["No matches found"]).await;
    check_with(json!({ "pattern": "needle", "path": "src/lib.rs" }), &["lib.rs:3: needle three"]).await;
    check_with(
        json!({ "pattern": "needle", "path": "src", "context": 1 }),
        &["lib.rs-2- two", "lib.rs:3: needle three", "lib.rs-4- four"],
    )
    .await;
    check_with(json!({ "pattern": "--pre=evil" }), &["No matches found"]).await;
}

#[tokio::test]
async fn grep_reports_its_limit_only_if_there_is_more() {
    let bench = Workbench::new();
    bench.write("a", "x1\n");
    bench.write("b", "x2\n");
    let text = bench.text("grep", json!({ "pattern": "x", "limit": 2 })).await;
    check(&text, &["a:1: x1", "b:1: x2"]);
    let output = bench.run("grep", json!({ "pattern": "x", "limit": 1 })).await.unwrap();
    check(
        &join_text(&output.content),
        &["a:1: x1", "", "[1 matches limit reached. Use limit=2 for more, or refine pattern]"],
    );
    assert_eq!(output.details, Some(json!({ "matchLimitReached": 1 })));
}

#[tokio::test]
async fn grep_shows_the_context_of_the_last_match() {
    let bench = Workbench::new();
    bench.write("a", "x1\nx2\no3\no4\no5\no6\nx7\n");
    let text = bench.text("grep", json!({ "pattern": "x", "limit": 1, "context": 2 })).await;
    check(
        &text,
        &[
            "a:1: x1",
            "a-2- x2",
            "a-3- o3",
            "",
            "[1 matches limit reached. Use limit=2 for more, or refine pattern]",
        ],
    );
    let text = bench.text("grep", json!({ "pattern": "x", "limit": 2, "context": 2 })).await;
    check(
        &text,
        &[
            "a:1: x1",
            "a:2: x2",
            "a-3- o3",
            "a-4- o4",
            "",
            "[2 matches limit reached. Use limit=4 for more, or refine pattern]",
        ],
    );
}

#[tokio::test]
async fn grep_cuts_long_lines_and_long_output() {
    let bench = Workbench::new();
    bench.write("a", "ü".repeat(600));
    let output = bench.run("grep", json!({ "pattern": "ü" })).await.unwrap();
    let notice = "[Some lines truncated to 500 chars. Use read tool to see full lines]";
    check(&join_text(&output.content), &[&format!("a:1: {}... [truncated]", "ü".repeat(500)), "", notice]);
    assert_eq!(output.details, Some(json!({ "linesTruncated": true })));

    bench.write("a", format!("{}\n", "x".repeat(400)).repeat(200));
    let output = bench.run("grep", json!({ "pattern": "x", "limit": 1000 })).await.unwrap();
    let text = join_text(&output.content);
    assert!(text.ends_with("\n\n[50.0KB limit reached]"), "{}", &text[text.len() - 60..]);
    assert_eq!(output.details.unwrap()["truncation"]["totalLines"], 200);
}

#[tokio::test]
async fn grep_says_what_is_wrong() {
    let bench = Workbench::new();
    let error = bench.error("grep", json!({ "pattern": "x", "path": "none" })).await;
    assert_eq!(error, format!("Path not found: {}", bench.path("none").display()));
    let error = bench.error("grep", json!({ "pattern": "(" })).await;
    assert!(error.starts_with("Invalid pattern: "), "{error}");
    let error = bench.error("grep", json!({ "pattern": "x", "glob": "a[" })).await;
    assert!(error.starts_with("Invalid glob: "), "{error}");
}

#[tokio::test]
async fn find_searches_hidden_but_not_ignored_files() {
    let bench = tree();
    let check_with = async |arguments: Value, expected: &[&str]| {
        check(&bench.text("find", arguments).await, expected);
    };
    check_with(json!({ "pattern": "*.rs" }), &["src/deep/mod.rs", "src/lib.rs"]).await;
    check_with(json!({ "pattern": ".*" }), &[".env", ".gitignore"]).await;
    check_with(json!({ "pattern": "DEEP" }), &["No files found matching pattern"]).await;
    check_with(json!({ "pattern": "d*p" }), &["src/deep/"]).await;
    check_with(json!({ "pattern": "src/*.rs" }), &["src/lib.rs"]).await;
    check_with(json!({ "pattern": "*.rs", "path": "src" }), &["deep/mod.rs", "lib.rs"]).await;
}

#[tokio::test]
async fn find_heeds_ignore_files_outside_of_repositories_too() {
    let bench = Workbench::new();
    bench.write(".gitignore", "*.log\n");
    bench.write("a.log", "");
    bench.write("a.txt", "");
    let text = bench.text("find", json!({ "pattern": "a.*" })).await;
    check(&text, &["a.txt"]);
}

#[tokio::test]
async fn find_reports_its_limit_only_if_there_is_more() {
    let bench = Workbench::new();
    bench.write("a", "");
    bench.write("b", "");
    check(&bench.text("find", json!({ "pattern": "*", "limit": 2 })).await, &["a", "b"]);
    let output = bench.run("find", json!({ "pattern": "*", "limit": 1 })).await.unwrap();
    check(
        &join_text(&output.content),
        &["a", "", "[1 results limit reached. Use limit=2 for more, or refine pattern]"],
    );
    assert_eq!(output.details, Some(json!({ "resultLimitReached": 1 })));
}

#[tokio::test]
async fn search_starts_at_a_linked_root_and_survives_odd_names() {
    use std::ffi::OsStr;
    use std::os::unix::ffi::OsStrExt as _;

    let bench = Workbench::new();
    bench.write("real/a b.txt", "needle\n");
    fs::write(bench.path("real").join(OsStr::from_bytes(b"\xff.txt")), "needle\n").unwrap();
    std::os::unix::fs::symlink("real", bench.path("link")).unwrap();
    let text = bench.text("find", json!({ "pattern": "*.txt", "path": "link" })).await;
    check(&text, &["a b.txt", "\u{fffd}.txt"]);
    let text = bench.text("grep", json!({ "pattern": "needle", "path": "link" })).await;
    check(&text, &["a b.txt:1: needle", "\u{fffd}.txt:1: needle"]);
}

/// Ignore files are opened by the walk; a pipe in their place never answers.
#[tokio::test]
async fn a_search_that_hangs_ends_when_it_is_cancelled() {
    for (tool, arguments) in
        [("find", json!({ "pattern": "*" })), ("grep", json!({ "pattern": "x", "path": "." }))]
    {
        let bench = Workbench::new();
        make_fifo(&bench.path(".ignore"));
        let reading = bench.path(".ignore");
        let cancel = async {
            // Opening the other end succeeds once the search waits in there; it is kept
            // open, so that reading hangs too.
            let writer = tokio::task::spawn_blocking(move || {
                std::fs::OpenOptions::new().write(true).open(reading).unwrap()
            });
            let writer = writer.await.unwrap();
            bench.cancel.cancel();
            writer
        };
        let (result, writer) = tokio::join!(bench.run(tool, arguments), cancel);
        let expected = format!(
            "Operation aborted; abandoned searching {} because the system did not respond",
            bench.cwd().display()
        );
        assert_eq!(result.unwrap_err().0, expected, "{tool}");
        drop(writer);
    }
}

#[tokio::test]
async fn grep_passes_over_a_line_of_any_length_and_says_so() {
    let bench = Workbench::new();
    bench.write("a.txt", "needle\n");
    bench.write("b.json", format!("{}needle\n", "x".repeat(17 << 20)));
    bench.write("c.txt", "needle\n");
    let text = bench.text("grep", json!({ "pattern": "needle" })).await;
    let notice = "[Not fully searched: b.json: a line is longer than 16.0MB]";
    assert_eq!(text, format!("a.txt:1: needle\nc.txt:1: needle\n\n{notice}"));
    let text = bench.text("grep", json!({ "pattern": "nothing" })).await;
    assert_eq!(text, format!("No matches found\n\n{notice}"));
    let error = bench.error("grep", json!({ "pattern": "(\\w{900}){900}" })).await;
    assert!(error.starts_with("Invalid pattern"), "{error}");
}

#[tokio::test]
async fn directory_that_is_ignored_is_searched_if_the_model_names_it() {
    let bench = Workbench::new();
    fs::create_dir(bench.path(".git")).unwrap();
    bench.write(".gitignore", "scripts/*\n*.log\n");
    bench.write("scripts/run.sh", "needle\n");
    let note = "[Ignore rules (.gitignore) exclude everything here; it was searched because path names it]";
    let text = bench.text("grep", json!({ "pattern": "needle", "path": "scripts" })).await;
    check(&text, &["run.sh:1: needle", "", note]);
    let text = bench.text("find", json!({ "pattern": "*.sh", "path": "scripts" })).await;
    check(&text, &["run.sh", "", note]);
    let text = bench.text("grep", json!({ "pattern": "nothing", "path": "scripts" })).await;
    check(&text, &["No matches found", "", note]);

    bench.write("src/a.rs", "x\n");
    bench.write("src/b.log", "needle\n");
    let left_out = |what: &str| {
        format!(
            "[1 {what} was left out because of ignore rules (.gitignore). \
             To search there, pass the directory or file itself as path]"
        )
    };
    let text = bench.text("grep", json!({ "pattern": "needle", "path": "src" })).await;
    check(&text, &["No matches found", "", &left_out("file")]);
    let text = bench.text("find", json!({ "pattern": "*.log", "path": "src" })).await;
    check(&text, &["No files found matching pattern", "", &left_out("path")]);
    let text = bench.text("grep", json!({ "pattern": "needle", "path": "src/b.log" })).await;
    check(&text, &["b.log:1: needle"]);
    // In the working directory the model knows that some files are skipped.
    check(&bench.text("grep", json!({ "pattern": "needle" })).await, &["No matches found"]);
    bench.write(".gitignore", "*\n");
    let text = bench.text("grep", json!({ "pattern": "needle" })).await;
    assert!(text.starts_with("No matches found\n\n[4 files were left out"), "{text}");
}

#[tokio::test]
async fn source_with_a_nul_byte_is_searched_and_its_lines_are_counted() {
    let bench = Workbench::new();
    bench.write("k.js", b"const a = '\0';\nconst b = '\0\0';\nneedle('\0')\n");
    for path in [".", "k.js"] {
        let text = bench.text("grep", json!({ "pattern": "needle", "path": path })).await;
        check(&text, &["k.js:3: needle('\u{fffd}')"]);
    }
    // Far behind the beginning, too.
    bench.write("k.js", format!("{}\n\0\nneedle\n", "x\n".repeat(50_000)));
    let text = bench.text("grep", json!({ "pattern": "needle" })).await;
    check(&text, &["k.js:50003: needle"]);
}

#[tokio::test]
async fn end_of_line_matches_before_crlf() {
    let bench = Workbench::new();
    bench.write("a.c", "int a;\r\nint b\r\n");
    bench.write("b.c", "int c;\nint d\n");
    let text = bench.text("grep", json!({ "pattern": ";$" })).await;
    check(&text, &["a.c:1: int a;", "b.c:1: int c;"]);
    let text = bench.text("grep", json!({ "pattern": "^int [bd]$" })).await;
    check(&text, &["a.c:2: int b", "b.c:2: int d"]);
    // Whoever asks for carriage returns finds them.
    let text = bench.text("grep", json!({ "pattern": ";\\r$" })).await;
    check(&text, &["a.c:1: int a;"]);
    let text = bench.text("grep", json!({ "pattern": ";", "literal": true })).await;
    check(&text, &["a.c:1: int a;", "b.c:1: int c;"]);
}

#[tokio::test]
async fn patterns_of_both_tools_start_in_the_searched_directory() {
    let bench = Workbench::new();
    for name in ["src/a.ts", "pkg/src/a.ts", "app/[id]/i.tsx", "app/i/i.tsx", "[id].tsx", "i.tsx"] {
        bench.write(name, "needle\n");
    }
    let check_both = async |pattern: &str, expected: &[&str]| {
        let text = bench.text("find", json!({ "pattern": pattern })).await;
        check(&text, expected);
        let lines: Vec<String> = expected.iter().map(|name| format!("{name}:1: needle")).collect();
        let lines: Vec<&str> = lines.iter().map(String::as_str).collect();
        let text = bench.text("grep", json!({ "pattern": "needle", "glob": pattern })).await;
        check(&text, &lines);
    };
    check_both("src/*.ts", &["src/a.ts"]).await;
    check_both("./src/*.ts", &["src/a.ts"]).await;
    check_both("././src/*.ts", &["src/a.ts"]).await;
    check_both("**/src/*.ts", &["pkg/src/a.ts", "src/a.ts"]).await;
    check_both("*.ts", &["pkg/src/a.ts", "src/a.ts"]).await;
    check_both("./*.ts", &["pkg/src/a.ts", "src/a.ts"]).await;
    check_both(bench.path("src/*.ts").to_str().unwrap(), &["src/a.ts"]).await;
    check_both("[id].tsx", &["[id].tsx", "app/[id]/i.tsx", "app/i/i.tsx", "i.tsx"]).await;
    check_both("app/[id]/*.tsx", &["app/[id]/i.tsx", "app/i/i.tsx"]).await;
}

#[tokio::test]
async fn searches_find_directories_whose_name_is_spelled_otherwise() {
    let bench = Workbench::new();
    bench.write("my\u{a0}dir/a.txt", "needle\n");
    let note = "[Nothing has that exact path; this is my\u{a0}dir]";
    let text = bench.text("grep", json!({ "pattern": "needle", "path": "my dir" })).await;
    check(&text, &["a.txt:1: needle", "", note]);
    let text = bench.text("find", json!({ "pattern": "*", "path": "my dir" })).await;
    check(&text, &["a.txt", "", note]);
    check(&bench.text("ls", json!({ "path": "my dir" })).await, &["a.txt", "", note]);
    bench.write("my dir/b.txt", "");
    check(&bench.text("ls", json!({ "path": "my dir" })).await, &["b.txt"]);
}

//! `read`, `write`, `edit` and `ls` on real files.

use std::fs;
use std::io::Cursor;

use image::{DynamicImage, ImageFormat, RgbImage};
use pi::agent::{Progress, ToolCx, ToolRegistry};
use pi::ai::{ContentBlock, join_text};
use pi::tools::{BashConfig, Edit, ImageLimits, ToolsConfig, preview, registry};
use serde_json::json;

use crate::support::files::make_fifo;
use crate::tools_support::Workbench;

fn lines(n_lines: usize) -> String {
    (1..=n_lines).map(|n| format!("line {n}\n")).collect()
}

#[tokio::test]
async fn read_shows_a_short_file_as_it_is() {
    let bench = Workbench::new();
    for content in ["", "a", "a\n", "\u{feff}a\r\n\tb\u{2028}ü\r\n"] {
        bench.write("f", content);
        assert_eq!(bench.text("read", json!({ "path": "f" })).await, content);
    }
}

#[tokio::test]
async fn read_notes_bytes_that_are_not_utf8() {
    let bench = Workbench::new();
    bench.write("f", b"caf\xe9\n");
    assert_eq!(
        bench.text("read", json!({ "path": "f" })).await,
        "caf\u{fffd}\n\n\n[This file is not valid UTF-8: byte 3 (0xe9, line 1) and maybe others are \
         shown as U+FFFD; writing the text back would destroy them.]"
    );
}

#[tokio::test]
async fn read_says_how_to_continue() {
    let bench = Workbench::new();
    bench.write("f", lines(3000));
    let output = bench.run("read", json!({ "path": "f" })).await.unwrap();
    let text = join_text(&output.content);
    assert!(
        text.ends_with("line 2000\n\n[Showing lines 1-2000 of 3001. Use offset=2001 to continue.]"),
        "{text}"
    );
    let truncation = &output.details.unwrap()["truncation"];
    assert_eq!(truncation["truncatedBy"], "lines");
    assert_eq!((&truncation["totalLines"], &truncation["outputLines"]), (&json!(3000), &json!(2000)));

    let text = bench.text("read", json!({ "path": "f", "offset": 2001 })).await;
    assert!(text.starts_with("line 2001\n") && text.ends_with("line 3000\n"), "{text}");
}

#[tokio::test]
async fn read_stops_at_the_byte_limit_between_lines() {
    let bench = Workbench::new();
    bench.write("f", format!("{}\n", "x".repeat(999)).repeat(100));
    let text = bench.text("read", json!({ "path": "f", "offset": 2 })).await;
    let notice = "\n\n[Showing lines 2-52 of 101 (50.0KB limit). Use offset=53 to continue.]";
    assert!(text.ends_with(notice), "{}", &text[text.len() - 100..]);
    assert_eq!(text.len(), 51 * 1000 - 1 + notice.len());
}

#[tokio::test]
async fn read_takes_a_window_of_lines() {
    let bench = Workbench::new();
    bench.write("f", lines(5));
    let check = async |offset: serde_json::Value, limit: serde_json::Value, expected: &str| {
        let text = bench.text("read", json!({ "path": "f", "offset": offset, "limit": limit })).await;
        assert_eq!(text, expected, "{offset} {limit}");
    };
    check(json!(2), json!(2), "line 2\nline 3\n\n[2 more lines in file. Use offset=4 to continue.]").await;
    check(json!(2.0), json!("2"), "line 2\nline 3\n\n[2 more lines in file. Use offset=4 to continue.]")
        .await;
    check(json!(0), json!(1), "line 1\n\n[4 more lines in file. Use offset=2 to continue.]").await;
    check(json!(4), json!(1), "line 4\n\n[1 more lines in file. Use offset=5 to continue.]").await;
    // Behind the last line break there is nothing to continue with.
    check(json!(1), json!(5), "line 1\nline 2\nline 3\nline 4\nline 5").await;
    check(json!(5), json!(1), "line 5").await;
    // Not a limit.
    check(json!(4), json!(0), "line 4\nline 5\n").await;
    check(json!(4), json!(-1), "line 4\nline 5\n").await;
    check(json!(4), json!(100), "line 4\nline 5\n").await;
    check(json!(6), json!(null), "").await;
    check(json!(-3), json!(1e300), &lines(5)).await;
    assert_eq!(
        bench.error("read", json!({ "path": "f", "offset": 7 })).await,
        "Offset 7 is beyond end of file (6 lines total)"
    );
}

#[tokio::test]
async fn read_points_to_bash_for_a_line_that_is_too_long() {
    let bench = Workbench::new();
    bench.write("f", format!("short\n{}\n", "x".repeat(60 * 1024)));
    let output = bench.run("read", json!({ "path": "f", "offset": 2 })).await.unwrap();
    assert_eq!(
        join_text(&output.content),
        "[Line 2 is 60.0KB, exceeds 50.0KB limit. Use bash: sed -n '2p' f | head -c 51200]"
    );
    assert_eq!(output.details.unwrap()["truncation"]["firstLineExceedsLimit"], true);
}

#[tokio::test]
async fn read_counts_across_chunks_of_a_large_file() {
    let bench = Workbench::new();
    // Characters of three bytes are cut by every power of two.
    bench.write("f", "€€€€€€€\n".repeat(30_000));
    let text = bench.text("read", json!({ "path": "f", "offset": 29_999 })).await;
    assert_eq!(text, "€€€€€€€\n€€€€€€€\n");
    let error = bench.error("read", json!({ "path": "f", "offset": 30_002 })).await;
    assert_eq!(error, "Offset 30002 is beyond end of file (30001 lines total)");
}

#[tokio::test]
async fn read_refuses_what_is_no_text_file() {
    let bench = Workbench::new();
    bench.write("app", b"\x7fELF\0\0\0");
    let error = bench.error("read", json!({ "path": "app" })).await;
    assert!(error.contains("is a binary file (7B)") && error.contains("xxd app"), "{error}");
    let error = bench.error("read", json!({ "path": "." })).await;
    assert!(error.contains("is a directory"), "{error}");
    let error = bench.error("read", json!({ "path": "none" })).await;
    assert_eq!(error, format!("File not found: {}", bench.path("none").display()));
}

#[tokio::test]
async fn read_does_not_wait_for_a_pipe_or_a_device() {
    let bench = Workbench::new();
    let error = bench.error("read", json!({ "path": "/dev/zero" })).await;
    assert_eq!(error, "/dev/zero is not a regular file");
}

#[tokio::test]
async fn read_attaches_pictures_whatever_their_name() {
    let bench = Workbench::new();
    let mut bytes = Cursor::new(Vec::new());
    DynamicImage::ImageRgb8(RgbImage::new(2500, 10)).write_to(&mut bytes, ImageFormat::Png).unwrap();
    bench.write("picture.txt", bytes.into_inner());
    let output = bench.run("read", json!({ "path": "picture.txt" })).await.unwrap();
    let [ContentBlock::Text(text), ContentBlock::Image(image)] = output.content.as_slice() else {
        panic!("{output:?}")
    };
    assert_eq!(
        text.text,
        format!(
            "Read image file [{}]\n[Image: original 2500x10, displayed at 2000x8. \
             Multiply coordinates by 1.25 to map to original image.]",
            image.mime_type
        )
    );
}

#[tokio::test]
async fn read_says_when_a_picture_is_damaged() {
    let bench = Workbench::new();
    bench.write("p.jpg", b"\xff\xd8\xff\xe0 nothing more");
    assert_eq!(
        bench.text("read", json!({ "path": "p.jpg" })).await,
        "Read image file [image/jpeg]\n\
         [Image omitted: could not be converted to a supported inline image format.]"
    );
}

#[tokio::test]
async fn write_creates_folders_and_keeps_every_byte() {
    let bench = Workbench::new();
    let text = bench.text("write", json!({ "path": "a/b/c.txt", "content": "x\r\ny\u{feff}" })).await;
    assert_eq!(text, "Successfully wrote to a/b/c.txt");
    assert_eq!(bench.read("a/b/c.txt"), "x\r\ny\u{feff}");
}

#[tokio::test]
async fn write_keeps_permissions_and_replaces_the_target_of_a_link() {
    use std::os::unix::fs::PermissionsExt as _;

    let bench = Workbench::new();
    let script = bench.write("run.sh", "old");
    fs::set_permissions(&script, fs::Permissions::from_mode(0o755)).unwrap();
    std::os::unix::fs::symlink("run.sh", bench.path("link")).unwrap();
    bench.text("write", json!({ "path": "link", "content": "new" })).await;
    assert!(fs::symlink_metadata(bench.path("link")).unwrap().is_symlink());
    assert_eq!(bench.read("run.sh"), "new");
    assert_eq!(fs::metadata(&script).unwrap().permissions().mode() & 0o777, 0o755);
}

#[tokio::test]
async fn write_fails_with_the_reason() {
    let bench = Workbench::new();
    bench.write("file", "");
    let error = bench.error("write", json!({ "path": "file/below", "content": "" })).await;
    assert!(error.starts_with("Could not write "), "{error}");
}

#[tokio::test]
async fn edit_reports_what_changed() {
    let bench = Workbench::new();
    bench.write("f", "a\nb\nc\n");
    let edits = json!([{ "oldText": "b", "newText": "B" }]);
    let output = bench.run("edit", json!({ "path": "f", "edits": edits })).await.unwrap();
    assert_eq!(join_text(&output.content), "Successfully replaced 1 block(s) in f.");
    let patch = "--- f\n+++ f\n@@ -1,3 +1,3 @@\n a\n-b\n+B\n c\n";
    let details = json!({ "diff": " 1 a\n-2 b\n+2 B\n 3 c", "patch": patch, "firstChangedLine": 2 });
    assert_eq!(output.details, Some(details));
    assert_eq!(bench.read("f"), "a\nB\nc\n");
}

#[tokio::test]
async fn edit_that_fails_leaves_the_file_alone() {
    let bench = Workbench::new();
    bench.write("latin1", b"caf\xe9");
    let arguments = json!({ "path": "latin1", "edits": [{ "oldText": "caf", "newText": "tea" }] });
    let error = bench.error("edit", arguments).await;
    assert!(error.contains("not UTF-8"), "{error}");
    assert_eq!(fs::read(bench.path("latin1")).unwrap(), b"caf\xe9");
}

#[tokio::test]
async fn preview_changes_nothing() {
    let bench = Workbench::new();
    bench.write("f", "a\n");
    let edits = Edit::from_arguments(&json!({ "oldText": "a", "newText": "b" }));
    let preview = preview("f", &edits, &bench.cwd(), None).unwrap();
    assert_eq!(preview.diff, "-1 a\n+1 b");
    assert_eq!(bench.read("f"), "a\n");
}

#[tokio::test]
async fn parallel_edits_of_one_file_all_arrive() {
    let bench = Workbench::new();
    let names: Vec<String> = (0..20).map(|n| format!("<{n}>")).collect();
    bench.write("f", names.join("\n"));
    let edits = names.iter().map(|name| {
        let edits = json!([{ "oldText": name, "newText": format!("{name} done") }]);
        bench.run("edit", json!({ "path": "./f", "edits": edits }))
    });
    for output in futures_util::future::join_all(edits).await {
        output.unwrap();
    }
    let expected: Vec<String> = names.iter().map(|name| format!("{name} done")).collect();
    assert_eq!(bench.read("f"), expected.join("\n"));
}

#[tokio::test]
async fn calls_on_one_file_run_in_the_order_they_were_made() {
    let bench = Workbench::new();
    let write = |content: &str| bench.run("write", json!({ "path": "f", "content": content }));
    let edit = |old: &str, new: &str| {
        bench.run("edit", json!({ "path": "f", "edits": [{ "oldText": old, "newText": new }] }))
    };
    let (first, second, third) = tokio::join!(write("a"), edit("a", "b"), edit("b", "c"));
    assert!(first.is_ok() && second.is_ok() && third.is_ok(), "{second:?} {third:?}");
    assert_eq!(bench.read("f"), "c");
}

#[tokio::test]
async fn ls_sorts_names_without_regard_to_case() {
    let bench = Workbench::new();
    bench.write("b", "");
    bench.write("A", "");
    bench.write(".hidden", "");
    bench.write("Dir/x", "");
    assert_eq!(bench.text("ls", json!({})).await, ".hidden\nA\nb\nDir/");
    assert_eq!(bench.text("ls", json!({ "path": "Dir" })).await, "x");
}

#[tokio::test]
async fn ls_follows_links_and_skips_broken_ones() {
    let bench = Workbench::new();
    bench.write("dir/x", "");
    std::os::unix::fs::symlink("dir", bench.path("link")).unwrap();
    std::os::unix::fs::symlink("nothing", bench.path("broken")).unwrap();
    assert_eq!(bench.text("ls", json!({})).await, "dir/\nlink/");
}

#[tokio::test]
async fn ls_counts_exactly() {
    let bench = Workbench::new();
    for name in ["a", "b", "c"] {
        bench.write(name, "");
    }
    assert_eq!(bench.text("ls", json!({ "limit": 3 })).await, "a\nb\nc");
    let output = bench.run("ls", json!({ "limit": 2 })).await.unwrap();
    assert_eq!(join_text(&output.content), "a\nb\n\n[2 entries limit reached. Use limit=4 for more]");
    assert_eq!(output.details, Some(json!({ "entryLimitReached": 2 })));
}

#[tokio::test]
async fn ls_says_what_it_cannot_list() {
    let bench = Workbench::new();
    let file = bench.write("file", "");
    assert_eq!(
        bench.error("ls", json!({ "path": "file" })).await,
        format!("Not a directory: {}", file.display())
    );
    assert_eq!(
        bench.error("ls", json!({ "path": "none" })).await,
        format!("Path not found: {}", bench.path("none").display())
    );
    fs::create_dir(bench.path("empty")).unwrap();
    assert_eq!(bench.text("ls", json!({ "path": "empty" })).await, "(empty directory)");
}

#[tokio::test]
async fn a_cancelled_call_does_nothing() {
    let bench = Workbench::new();
    bench.write("f", "a");
    bench.cancel.cancel();
    let calls = [
        ("read", json!({ "path": "f" })),
        ("write", json!({ "path": "f", "content": "b" })),
        ("edit", json!({ "path": "f", "edits": [{ "oldText": "a", "newText": "b" }] })),
        ("ls", json!({})),
        ("grep", json!({ "pattern": "a" })),
        ("find", json!({ "pattern": "*" })),
        ("bash", json!({ "command": "echo b > f" })),
    ];
    for (name, arguments) in calls {
        assert_eq!(bench.error(name, arguments).await, "Operation aborted", "{name}");
    }
    assert_eq!(bench.read("f"), "a");
}

#[tokio::test]
async fn a_file_that_changed_since_the_model_saw_it_is_said() {
    let bench = Workbench::new();
    let edit = json!({ "path": "f", "edits": [{ "oldText": "one", "newText": "1" }] });
    let note = "Note: the file had changed on disk since you last read or wrote it.";
    bench.write("f", "one two\n");
    // Never seen: nothing to compare with.
    let text = bench.text("edit", edit.clone()).await;
    assert_eq!(text, "Successfully replaced 1 block(s) in f.");
    // The model knows what it wrote itself.
    bench.text("write", json!({ "path": "f", "content": "one\n" })).await;
    assert!(!bench.text("edit", edit.clone()).await.contains(note));

    bench.write("f", "one and\nmore\n");
    let text = bench.text("edit", edit.clone()).await;
    assert!(
        text.starts_with("Successfully replaced 1 block(s) in f.\n\nNote: the file had changed"),
        "{text}"
    );
    assert_eq!(bench.read("f"), "1 and\nmore\n");

    bench.text("read", json!({ "path": "f" })).await;
    // The same length, and maybe the same tick of the clock.
    bench.write("f", "2 and\nmore\n");
    let text = bench.text("read", json!({ "path": "f", "offset": 2 })).await;
    assert_eq!(
        text,
        "more\n\n\n[This file has changed since you last read or wrote it; line numbers may have moved.]"
    );
    assert_eq!(bench.text("read", json!({ "path": "f", "offset": 2 })).await, "more\n");
    bench.write("f", "3\n");
    let text = bench.text("write", json!({ "path": "f", "content": "4\n" })).await;
    assert!(text.starts_with("Successfully wrote to f\n\nNote: the file had changed"), "{text}");
    assert!(!bench.text("write", json!({ "path": "f", "content": "5\n" })).await.contains(note));
}

#[tokio::test]
async fn sessions_do_not_share_what_they_saw_of_files() {
    let bench = Workbench::new();
    let config = ToolsConfig {
        home: None,
        images: ImageLimits::default(),
        bash: BashConfig::new(bench.temp_dir.clone()),
    };
    let names: Vec<String> = ["read", "write"].map(str::to_owned).into();
    let first = registry(&config, &names);
    let second = first.for_session();
    let call = async |tools: &ToolRegistry, name: &str, arguments: serde_json::Value| {
        let cx = ToolCx {
            call_id: "call",
            cwd: &bench.cwd(),
            environment: Vec::new(),
            cancel: bench.cancel.clone(),
            progress: Progress::ignore(),
        };
        join_text(&tools.get(name).unwrap().run(arguments, cx).await.unwrap().content)
    };
    bench.write("f", "one\n");
    call(&first, "read", json!({ "path": "f" })).await;
    bench.write("f", "two\n");
    let write = json!({ "path": "f", "content": "three\n" });
    assert_eq!(call(&second, "write", write.clone()).await, "Successfully wrote to f");
    assert!(call(&first, "write", write).await.contains("had changed on disk"));
}

#[tokio::test]
async fn tools_use_the_path_as_it_is_written() {
    let bench = Workbench::new();
    bench.write("a\u{3000}b.txt", "wide");
    bench.write("a b.txt", "plain");
    assert_eq!(bench.text("read", json!({ "path": "a\u{3000}b.txt" })).await, "wide");
    let text = bench.text("write", json!({ "path": "a\u{3000}b.txt", "content": "new" })).await;
    assert_eq!(text, "Successfully wrote to a\u{3000}b.txt");
    assert_eq!((bench.read("a\u{3000}b.txt").as_str(), bench.read("a b.txt").as_str()), ("new", "plain"));

    bench.write("@types/x.d.ts", "one");
    assert_eq!(bench.text("read", json!({ "path": "@types/x.d.ts" })).await, "one");
    assert_eq!(bench.text("ls", json!({ "path": "@types" })).await, "x.d.ts");
    let edits = json!([{ "oldText": "one", "newText": "two" }]);
    bench.text("edit", json!({ "path": "@types/x.d.ts", "edits": edits })).await;
    assert_eq!(bench.read("@types/x.d.ts"), "two");
    bench.text("write", json!({ "path": "@types/y.d.ts", "content": "y" })).await;
    assert_eq!(bench.read("@types/y.d.ts"), "y");
    bench.write("@file.txt", "old");
    bench.text("write", json!({ "path": "@file.txt", "content": "new" })).await;
    assert_eq!(bench.read("@file.txt"), "new");
    assert!(!bench.path("file.txt").exists() && !bench.path("types").exists());
}

#[tokio::test]
async fn tools_find_the_only_file_with_a_similar_name_and_name_it() {
    let bench = Workbench::new();
    let name = "Snímek v\u{a0}13.05.txt";
    bench.write(name, "text");
    let asked = "Snímek v 13.05.txt";
    let expected = format!("text\n\n[Nothing has that exact path; this is {name}]");
    assert_eq!(bench.text("read", json!({ "path": asked })).await, expected);
    let edits = json!([{ "oldText": "text", "newText": "edited" }]);
    let text = bench.text("edit", json!({ "path": asked, "edits": edits })).await;
    assert_eq!(text, format!("Successfully replaced 1 block(s) in {name}."));
    let text = bench.text("write", json!({ "path": asked, "content": "whole" })).await;
    assert_eq!(text, format!("Successfully wrote to {name}"));
    assert_eq!(bench.read(name), "whole");
    assert!(!bench.path(asked).exists());

    bench.write("cafe\u{301}.txt", "x");
    let edits = json!([{ "oldText": "x", "newText": "y" }]);
    bench.text("edit", json!({ "path": "café.txt", "edits": edits })).await;
    assert_eq!(bench.read("cafe\u{301}.txt"), "y");
    let text = bench.text("write", json!({ "path": "@src/new.rs", "content": "z" })).await;
    assert_eq!(text, "Successfully wrote to src/new.rs");
}

#[tokio::test]
async fn parent_of_a_linked_directory_is_that_of_its_target() {
    let bench = Workbench::new();
    bench.write("deep/target/x", "");
    bench.write("deep/f", "right");
    std::os::unix::fs::symlink("deep/target", bench.path("link")).unwrap();
    assert_eq!(bench.text("read", json!({ "path": "link/../f" })).await, "right");
    bench.text("write", json!({ "path": "link/../f", "content": "new" })).await;
    assert_eq!(bench.read("deep/f"), "new");
    assert!(!bench.path("f").exists());
}

#[tokio::test]
async fn read_shows_utf_16_with_a_mark_as_text() {
    let bench = Workbench::new();
    let bytes: Vec<u8> = "\u{feff}grün\r\nb\r\n".encode_utf16().flat_map(u16::to_le_bytes).collect();
    bench.write("out.txt", &bytes);
    assert_eq!(
        bench.text("read", json!({ "path": "out.txt" })).await,
        "grün\r\nb\r\n\n\n[This file is UTF-16LE text, shown as UTF-8; edit cannot change it, and write \
         would store UTF-8.]"
    );
    assert_eq!(bench.text("grep", json!({ "pattern": "grün$" })).await, "out.txt:1: grün");
    let edits = json!([{ "oldText": "b", "newText": "c" }]);
    let error = bench.error("edit", json!({ "path": "out.txt", "edits": edits })).await;
    assert!(error.contains("It is UTF-16 text"), "{error}");
    assert_eq!(fs::read(bench.path("out.txt")).unwrap(), bytes);
}

#[tokio::test]
async fn write_does_not_wait_for_a_pipe() {
    let bench = Workbench::new();
    make_fifo(&bench.path("pipe"));
    let error = bench.error("write", json!({ "path": "pipe", "content": "x" })).await;
    assert_eq!(error, format!("{} is not a regular file", bench.path("pipe").display()));
}

#[tokio::test]
async fn write_below_a_file_names_the_file() {
    let bench = Workbench::new();
    let file = bench.write("x", "");
    for path in ["x/y.txt", "x/y/z.txt"] {
        let error = bench.error("write", json!({ "path": path, "content": "" })).await;
        let expected = format!(
            "Could not write {}: {} is a file, not a directory",
            bench.path(path).display(),
            file.display()
        );
        assert_eq!(error, expected);
    }
}

#[tokio::test]
async fn read_keeps_little_of_a_line_of_any_length() {
    let bench = Workbench::new();
    bench.write("f", format!("{}\nend\n", "x".repeat(8 << 20)));
    let text = bench.text("read", json!({ "path": "f" })).await;
    assert_eq!(text, "[Line 1 is 8.0MB, exceeds 50.0KB limit. Use bash: sed -n '1p' f | head -c 51200]");
    assert_eq!(bench.text("read", json!({ "path": "f", "offset": 2 })).await, "end\n");
}

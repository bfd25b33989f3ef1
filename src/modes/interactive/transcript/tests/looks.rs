//! Snapshots of each kind of cell.

use crate::ai::MessageBuilder;
use crate::session::{
    BashExecution, BashId, BranchSummary, Compaction, CustomMessage, Entry, EntryBody, EntryId, NoticeLevel,
};

use crate::tui::theme::Token;

use super::*;

#[test]
fn a_conversation() {
    let mut stage = TranscriptStage::new();
    stage.transcript.header("pi", "v0.1.0", &["escape interrupt · / commands · ctrl+o more"]);
    for message in [
        user("What is in `a.txt`?\nSay it **short**."),
        answer(
            StopReason::Stop,
            vec![thinks("Easy."), says("# Two lines\n\n- alpha\n- beta, which is rather long for one row")],
        ),
    ] {
        stage.agent(AgentEvent::MessageEnd(Arc::new(message)));
    }
    insta::assert_snapshot!(stage.text(40), @"
    |
    | pi v0.1.0
    | escape interrupt · / commands · ctrl+o
    | more
    |
    |
    | What is in `a.txt`?
    | Say it **short**.
    |
    |
    | Easy.
    |
    | Two lines
    |
    | - alpha
    | - beta, which is rather long for one
    |   row
    ");
}

#[test]
fn prompts_are_shown_as_they_were_typed() {
    let text = "+ a plus\n3. three\n7. seven\n\n  a*b*c and __init__ \\alpha\n<!-- note -->\n\n\n| a | b |\n|---|---|\n\
                after it\n# x\n&amp; $x^2$ ~~no~~ [l](u)\n```\ncode";
    let mut stage = TranscriptStage::with([user(text)]);
    let shown = stage.text(60);
    let lines: Vec<&str> = shown.lines().skip(2).map(|line| line.strip_prefix("| ").unwrap_or("")).collect();
    assert_eq!(lines[..text.lines().count()].join("\n"), text);
    // Nothing is lost where it wraps.
    let narrow: String = stage.text(12).lines().map(|line| line.trim_start_matches('|').trim()).collect();
    assert_eq!(narrow.replace(' ', ""), text.replace([' ', '\n'], ""));
}

#[test]
fn what_cannot_be_seen_in_a_prompt_is_spelt_out() {
    let text =
        "run \u{202e}gpj.exe\u{1b}[2J\u{200b}\n\n```\n\tcode\n```\n\n👩\u{200d}💻 می\u{200c}خواهم ❤\u{fe0f}";
    let shown = TranscriptStage::with([user(text)]).text(60);
    assert!(shown.contains("run <U+202E>gpj.exe<U+001B>[2J<U+200B>"), "{shown}");
    assert!(shown.contains("👩\u{200d}💻 می\u{200c}خواهم ❤\u{fe0f}"), "{shown}");
}

#[test]
fn long_prompt_shows_both_ends_until_it_is_expanded() {
    let mut stage = TranscriptStage::with([user(&format!("{}\nWhat is **wrong**?", numbered(100)))]);
    insta::assert_snapshot!(stage.text(40));
    let rows = stage.text(40).lines().count();
    for width in [20, 80, 120, 200] {
        assert_eq!(stage.text(width).lines().count(), rows, "{width}");
    }
    let expanded = stage.expanded(true).text(40);
    assert!(expanded.contains("line 50") && expanded.contains("What is **wrong**?"), "{expanded}");

    let text: String = (0..3_000).map(|n| format!("alpha{n} beta gamma, ")).collect();
    for width in [20, 40, 80, 200] {
        let rows = TranscriptStage::with([user(&text)]).text(width);
        let shown: Vec<&str> = rows.lines().map(|row| row.trim_matches(['|', ' '])).collect();
        assert_eq!(shown.len(), 2 + 10 + 1 + 4 + 1, "{rows}");
        let at = shown.iter().position(|row| row.starts_with('…')).unwrap();
        // Ends of rows are ends of words.
        let joined = |rows: &[&str]| rows.join(" ").trim().to_owned();
        let (head, tail) = (joined(&shown[..at]), joined(&shown[at + 1..]));
        let hidden = text.trim_end().strip_prefix(&head).and_then(|rest| rest.strip_suffix(&tail)).unwrap();
        let n_chars = hidden.trim().chars().count();
        let counted: usize =
            shown[at].split(|c: char| !c.is_ascii_digit()).find_map(|n| n.parse().ok()).unwrap();
        assert!(counted.abs_diff(n_chars) <= 2, "{counted} for {n_chars}");
    }
    let short_lines: String = (1..=40).map(|n| format!("{n}\n")).collect();
    let rows = TranscriptStage::with([user(&short_lines)]).text(40);
    assert!(rows.contains("(26 more lines") && rows.contains("| 40"), "{rows}");
    let mut stage = TranscriptStage::with([user(&numbered(30))]);
    assert!(stage.text(40).contains("line 15"), "it is not long");
}

#[test]
fn a_skill_of_the_user_is_a_row() {
    let block = "<skill name=\"pdf\" location=\"/s/pdf/SKILL.md\">\nReferences are relative to /s/pdf.\n\n\
                 # Reading\n\nUse `pdftotext`.\n</skill>";
    let mut stage = TranscriptStage::with([user(&format!("{block}\n\nread **a.pdf**")), user(block)]);
    insta::assert_snapshot!(stage.text(40), @"
    |
    |
    | [skill] pdf (ctrl+o to expand)
    | read **a.pdf**
    |
    |
    |
    | [skill] pdf (ctrl+o to expand)
    |
    ");
    stage.expanded(true);
    let whole = stage.text(40);
    assert_eq!(whole.matches("Use pdftotext.").count(), 2, "{whole}");
}

#[test]
fn thinking_runs_are_one_cell_and_can_be_hidden() {
    let mut stage = TranscriptStage::new();
    stage.answer();
    stage.begin(0, BlockKind::Thinking).delta(0, "First");
    stage.begin(1, BlockKind::Thinking).delta(1, "Second\n").delta(1, "\nthird");
    stage.begin(2, BlockKind::Text).delta(2, "Done.");
    insta::assert_snapshot!(stage.text(40), @"
    |
    | First
    |
    | Second
    |
    | third
    |
    | Done.
    ");
    stage.change_view(|view| view.hide_thinking = true);
    insta::assert_snapshot!(stage.text(40), @"
    |
    | Thinking…
    |
    | Done.
    ");
}

#[test]
fn calls_that_wait_have_no_clock_until_they_run() {
    let bash = call("bash", json!({ "command": "make" }));
    let read = call("read", json!({ "path": "a.txt" }));
    let mut stage = TranscriptStage::new();
    stage.answer().start_call(&bash).start_call(&read).wait(5_000);
    insta::assert_snapshot!(stage.text(40));
    for call in [&bash, &read] {
        stage.agent(AgentEvent::ToolRunning { call_id: call.id.clone() });
    }
    stage.wait(2_000);
    let shown = stage.text(40);
    assert!(shown.contains("Elapsed 2s") && !shown.to_lowercase().contains("waiting"), "{shown}");
}

#[test]
fn bash_while_it_runs() {
    let mut stage = TranscriptStage::new();
    stage.answer().begin(0, BlockKind::ToolCall { id: "call-bash".into(), name: "bash".into() });
    insta::assert_snapshot!(stage.text(40), @"
    |
    |
    | $ …
    |
    ");
    stage.delta(0, r#"{"command":"seq 1"#);
    insta::assert_snapshot!(stage.text(40), @"
    |
    |
    | $ seq 1 …
    |
    ");
    let seq = call("bash", json!({ "command": "seq 1 12; exit 3", "timeout": 30 }));
    stage.run_call(&seq).wait(4_200).partial(&seq, &numbered(12));
    assert!(stage.transcript.wants_tick());
    insta::assert_snapshot!(stage.text(40), @"
    |
    |
    | $ seq 1 12; exit 3 (timeout 30s)
    |
    | … (7 earlier lines, ctrl+o to expand)
    | line 8
    | line 9
    | line 10
    | line 11
    | line 12
    |
    | Elapsed 4s
    |
    ");
    stage.expanded(true);
    insta::assert_snapshot!(stage.text(40), @"
    |
    |
    | $ seq 1 12; exit 3 (timeout 30s)
    |
    | … (2 earlier lines, /transcript)
    | line 3
    | line 4
    | line 5
    | line 6
    | line 7
    | line 8
    | line 9
    | line 10
    | line 11
    | line 12
    |
    | Elapsed 4s
    |
    ");
}

#[test]
fn bash_that_failed() {
    let seq = call("bash", json!({ "command": "seq 1 12; exit 3" }));
    let mut stage = called(&seq, error(&seq, &format!("{}\n\nCommand exited with code 3", numbered(12))));
    insta::assert_snapshot!(stage.text(80), @"
    |
    |
    | $ seq 1 12; exit 3
    |
    | … (7 earlier lines, ctrl+o to expand)
    | line 8
    | line 9
    | line 10
    | line 11
    | line 12
    |
    | ✗ Command exited with code 3
    | Took 1.2s
    |
    ");
    insta::assert_snapshot!(stage.expanded(true).text(80), @"
    |
    |
    | $ seq 1 12; exit 3
    |
    | line 1
    | line 2
    | line 3
    | line 4
    | line 5
    | line 6
    | line 7
    | line 8
    | line 9
    | line 10
    | line 11
    | line 12
    |
    | ✗ Command exited with code 3
    | Took 1.2s
    |
    ");
}

#[test]
fn bash_with_cut_output() {
    let yes = call("bash", json!({ "command": "yes" }));
    let mut stage = called(
        &yes,
        ToolResultMessage {
            details: Some(json!({ "truncation": {}, "fullOutputPath": "/tmp/pi-bash-1.log" })),
            ..result(&yes, "y\ny\n\n[Showing lines 1-2 of 9. Full output: /tmp/pi-bash-1.log]")
        },
    );
    insta::assert_snapshot!(stage.text(80), @"
    |
    |
    | $ yes
    |
    | y
    | y
    |
    | [Showing lines 1-2 of 9. Full output: /tmp/pi-bash-1.log]
    | /output shows all of it
    | Took 1.2s
    |
    ");
    let mut stage = called(
        &yes,
        ToolResultMessage {
            details: Some(json!({ "truncation": {}, "fullOutputPath": "/tmp/1.log" })),
            ..result(&yes, "y\n\n[Showing lines 9-9 of 9. Output without 8B in the middle: /tmp/1.log]")
        },
    );
    let shown = stage.text(80);
    assert!(shown.contains("| /output shows what was saved"), "{shown}");
}

#[test]
fn long_output_counts_rows_of_the_screen() {
    let echo = call("bash", json!({ "command": "cat <<EOF\none\ntwo\nEOF" }));
    let mut stage = called(&echo, result(&echo, &"word ".repeat(60)));
    insta::assert_snapshot!(stage.text(40), @"
    |
    |
    | $ cat <<EOF
    | one
    | two
    | EOF
    |
    | … (4 earlier lines, ctrl+o to expand)
    | word word word word word word word
    | word word word word word word word
    | word word word word word word word
    | word word word word word word word
    | word word word word
    |
    | Took 1.2s
    |
    ");
}

#[test]
fn read_shows_its_text_only_when_expanded() {
    let read = call("read", json!({ "path": "/home/me/proj/src/a.rs", "offset": 3, "limit": 2 }));
    let text = "fn main() {\n\tprintln!();\n\n[7 more lines in file. Use offset=5 to continue.]";
    let mut stage = called(&read, result(&read, text));
    insta::assert_snapshot!(stage.text(40), @"
    |
    |
    | read src/a.rs:3-4
    |
    ");
    insta::assert_snapshot!(stage.expanded(true).text(80), @"
    |
    |
    | read src/a.rs:3-4
    |
    | fn main() {
    |    println!();
    |
    | [7 more lines in file. Use offset=5 to continue.]
    |
    ");
}

#[test]
fn read_that_failed() {
    let read = call("read", json!({ "path": "~/other/a.txt" }));
    let mut stage = called(&read, error(&read, &numbered(12)));
    insta::assert_snapshot!(stage.text(40), @"
    |
    |
    | read ~/other/a.txt
    |
    | ✗ line 1
    |   line 2
    |   line 3
    |   line 4
    |   line 5
    |   line 6
    |   line 7
    |   line 8
    |   line 9
    |   line 10
    |   … (2 more lines, ctrl+o to expand)
    |
    ");
}

#[test]
fn read_of_a_picture_names_the_model_that_could_not_see_it() {
    let read = call("read", json!({ "path": "dot.png" }));
    let mut message = result(&read, "Read image file [image/png]");
    message.details = Some(json!({ "imageUnsupportedByModel": "m-1" }));
    let rows = called(&read, message).text(60);
    assert!(rows.contains("[m-1 does not support images; it saw a placeholder"), "{rows}");
}

#[test]
fn read_of_a_picture() {
    let read = call("read", json!({ "path": "dot.png" }));
    let mut message = result(&read, "Read image file [image/png]");
    let image = json!({ "type": "image", "data": "", "mimeType": "image/png" });
    message.content.push(serde_json::from_value(image).unwrap());
    insta::assert_snapshot!(called(&read, message).text(40), @"
    |
    |
    | read dot.png
    | [Image: image/png]
    |
    ");
}

#[test]
fn pictures_by_address() {
    let read = call("see", json!({}));
    let mut message = result(&read, "seen");
    let at = |url: &str| json!({ "type": "text", "text": format!("[image: {url}]"), "imageUrl": url });
    message.content.push(serde_json::from_value(at("https://x/\u{202e}y.png")).unwrap());
    insta::assert_snapshot!(called(&read, message).text(40), @"
    |
    |
    | see
    |
    | seen
    | [image: https://x/y.png]
    |
    ");
    let content = json!([{ "type": "text", "text": "look" }, at("https://x/y.png")]);
    let said = serde_json::from_value(json!({ "role": "user", "content": content })).unwrap();
    insta::assert_snapshot!(TranscriptStage::with([said]).text(40), @"
    |
    |
    | look
    | [image: https://x/y.png]
    |
    ");
}

#[test]
fn edit_asks_then_shows_what_changed() {
    let arguments = json!({ "path": "src/x.ts", "edits": [
        { "oldText": "alpha\nbeta\n", "newText": "alphaX\nbeta\n" },
        { "oldText": "gone", "newText": "" },
    ] });
    let edit = call("edit", arguments);
    let mut stage = TranscriptStage::new();
    stage.run_call(&edit);
    insta::assert_snapshot!(stage.text(40), @"
    |
    |
    | edit src/x.ts …
    |
    | -alpha
    | +alphaX
    |  beta
    |  …
    | -gone
    |
    ");
    let result = ToolResultMessage {
        details: Some(
            json!({ "diff": "  8 before\n- 9 alpha\n+ 9 alphaX\n 10 a line that is too long for the width of the screen\n   ..." }),
        ),
        ..result(&edit, "Successfully replaced 2 block(s) in src/x.ts.")
    };
    stage.agent(AgentEvent::ToolEnd { call_id: edit.id.clone(), result: Arc::new(result) });
    insta::assert_snapshot!(stage.text(40), @"
    |
    |
    | edit src/x.ts
    |
    |   8 before
    | - 9 alpha
    | + 9 alphaX
    |  10 a line that is too long for the
    |     width of the screen
    |    …
    |
    ");
}

#[test]
fn edit_that_failed() {
    let edit = call("edit", json!({ "path": "x", "edits": [{ "oldText": "a", "newText": "b" }] }));
    let mut stage = called(&edit, error(&edit, "Could not find the exact text in x."));
    insta::assert_snapshot!(stage.text(80), @"
    |
    |
    | edit x
    |
    | ✗ Could not find the exact text in x.
    |
    ");
}

#[test]
fn write_shows_its_content_as_it_arrives() {
    let mut stage = TranscriptStage::new();
    stage.answer().begin(0, BlockKind::ToolCall { id: "w".into(), name: "write".into() });
    stage.delta(0, r#"{"path":"out.rs","content":"fn a() {}\n"#);
    insta::assert_snapshot!(stage.text(40), @"
    |
    |
    | write out.rs …
    |
    | fn a() {}
    |
    ");
    stage.delta(0, &"// more\\n".repeat(14));
    insta::assert_snapshot!(stage.text(40), @"
    |
    |
    | write out.rs …
    |
    | fn a() {}
    | // more
    | // more
    | // more
    | // more
    | // more
    | // more
    | // more
    | // more
    | // more
    | … (5 more lines, ctrl+o to expand)
    |
    ");
    // The total has to fit.
    assert!(stage.text(60).contains("… (5 more lines, 15 total, ctrl+o to expand)"));
}

#[test]
fn findings_are_cut_after_15_rows() {
    let grep = call("grep", json!({ "pattern": "fn .*", "path": "src", "glob": "*.rs", "limit": 16 }));
    let remark = "16 matches limit reached. Use limit=32 for more, or refine pattern";
    let mut stage = called(
        &grep,
        ToolResultMessage {
            details: Some(json!({ "matchLimitReached": 16 })),
            ..result(&grep, &format!("{}\n[{remark}]", numbered(16)))
        },
    );
    insta::assert_snapshot!(stage.text(80), @"
    |
    |
    | grep /fn .*/ in src (*.rs) limit 16
    |
    | line 1
    | line 2
    | line 3
    | line 4
    | line 5
    | line 6
    | line 7
    | line 8
    | line 9
    | line 10
    | line 11
    | line 12
    | line 13
    | line 14
    | line 15
    | … (1 more line, ctrl+o to expand)
    |
    | [16 matches limit reached. Use limit=32 for more, or refine pattern]
    |
    ");
}

#[test]
fn find_and_ls() {
    let find = call("find", json!({ "pattern": "*.toml" }));
    insta::assert_snapshot!(called(&find, result(&find, "Cargo.toml")).text(40), @"
    |
    |
    | find *.toml in .
    |
    | Cargo.toml
    |
    ");
    let ls = call("ls", json!({}));
    insta::assert_snapshot!(called(&ls, result(&ls, "a\nb/")).text(40), @"
    |
    |
    | ls .
    |
    | a
    | b/
    |
    ");
}

#[test]
fn other_tools_show_their_arguments() {
    let other = call("search_web", json!({ "query": "rust\nwrap", "n": 3, "deep": { "a": [1, 2] } }));
    let mut stage = called(&other, result(&other, &numbered(12)));
    insta::assert_snapshot!(stage.text(40), @r#"
    |
    |
    | search_web query=rust wrap n=3
    | deep={"a":[1,2]}
    |
    | line 1
    | line 2
    | line 3
    | line 4
    | line 5
    | line 6
    | line 7
    | line 8
    | line 9
    | line 10
    | … (2 more lines, ctrl+o to expand)
    |
    "#);
    insta::assert_snapshot!(stage.expanded(true).text(40), @r#"
    |
    |
    | search_web
    | query=rust wrap
    | n=3
    | deep={"a":[1,2]}
    |
    | line 1
    | line 2
    | line 3
    | line 4
    | line 5
    | line 6
    | line 7
    | line 8
    | line 9
    | line 10
    | line 11
    | line 12
    |
    "#);
}

#[test]
fn failed_answers_say_why() {
    let mut stage = TranscriptStage::with([
        failed(StopReason::Error, vec![says("Half an ans")], "overloaded: try again later"),
        failed(StopReason::Aborted, vec![], "Request was aborted"),
        answer(StopReason::Length, vec![says("So long")]),
    ]);
    insta::assert_snapshot!(stage.text(40), @"
    |
    | Half an ans
    |
    | Error: acme: overloaded: try again
    | later
    |
    | Operation aborted
    |
    | So long
    |
    | The answer was truncated at the output
    | token limit
    ");
}

#[test]
fn an_edit_of_the_last_line_break_alone_says_so() {
    let edit = call("edit", json!({ "path": "a", "edits": [{ "oldText": "b", "newText": "b\n" }] }));
    let mut done = result(&edit, "Successfully replaced 1 block(s) in a.");
    done.details = Some(json!({ "diff": " 1 a\n-2 b\n+2 b" }));
    let text = called(&edit, done).text(80);
    assert!(text.contains("| The text of the last line did not change, only its line break."), "{text}");
}

#[test]
fn a_call_without_a_name_says_so() {
    let call = call("", json!({ "path": "src" }));
    let text = called(&call, error(&call, "The call names no tool")).text(60);
    assert!(
        text.contains("| (no tool name) path=src") && text.contains("✗ The call names no tool"),
        "{text}"
    );
}

#[test]
fn an_answer_without_text_says_so() {
    let check = |content: Vec<AssistantBlock>, expected: &str| {
        let mut stage = TranscriptStage::with([answer(StopReason::Stop, content)]);
        stage.event(SessionEvent::Settled { aborted: false });
        let text = stage.text(80);
        assert_eq!(text.lines().last(), Some(expected), "{text}");
    };
    check(vec![], "| The model returned an empty answer.");
    check(vec![says(" \n")], "| The model returned an empty answer.");
    check(vec![thinks("Hm.")], "| The model stopped after thinking, without an answer.");
    check(vec![thinks("Hm."), says("Yes.")], "| Yes.");
    let ls = AssistantBlock::ToolCall(call("ls", json!({ "path": "src" })));
    check(vec![thinks("Hm."), ls], "|");

    let mut live = TranscriptStage::new();
    live.answer().agent(AgentEvent::MessageEnd(Arc::new(answer(StopReason::Stop, vec![]))));
    assert!(!live.text(80).contains("empty"), "it may be requested again");
    live.event(SessionEvent::Settled { aborted: false });
    assert_eq!(live.text(80).lines().last(), Some("| The model returned an empty answer."));
}

#[test]
fn calls_of_a_failed_answer_say_why() {
    let ls = call("ls", json!({ "path": "src" }));
    let mut stage = TranscriptStage::new();
    stage.answer().begin(0, BlockKind::ToolCall { id: ls.id.clone(), name: "ls".into() });
    let block = AssistantBlock::ToolCall(ls);
    let message = failed(StopReason::Aborted, vec![block], "Request was aborted");
    stage.agent(AgentEvent::MessageEnd(Arc::new(message)));
    insta::assert_snapshot!(stage.text(40), @"
    |
    |
    | ls src
    |
    | ✗ Operation aborted
    |
    ");
}

#[test]
fn a_call_that_broke_off_keeps_what_had_arrived() {
    let shown = |name: &str, arrived: &str, error: &str| {
        let kind = BlockKind::ToolCall { id: "c".into(), name: name.into() };
        let pending = assistant(StopReason::Pending, vec![]);
        let mut builder = MessageBuilder::new(pending.clone());
        let mut stage = TranscriptStage::new();
        stage.answer();
        for event in [
            StreamEvent::BlockStart { index: 0, kind },
            StreamEvent::Delta { index: 0, text: arrived.to_owned() },
        ] {
            builder.push(&event);
            stage.stream(event);
        }
        stage.layout(40);
        let reason = if error.is_empty() { StopReason::Aborted } else { StopReason::Error };
        let message = failed(reason, builder.into_message().content, error);
        stage.agent(AgentEvent::MessageEnd(Arc::new(message.clone())));
        let text = stage.text(40);
        let stored = serde_json::to_value(&message).unwrap();
        let mut resumed = TranscriptStage::with([serde_json::from_value(stored).unwrap()]);
        assert_eq!(resumed.text(40), text);
        text
    };
    let check = |name: &str, arrived: &str, error: &str, parts: &[&str]| {
        let text = shown(name, arrived, error);
        assert!(parts.iter().all(|part| text.contains(part)), "{text}");
    };
    let written = r#"{"path":"sub/new.ts","content":"let a = 1;\nlet"#;
    check("write", written, "", &["write sub/new.ts\n", "let a = 1;\n", "✗ Operation aborted"]);
    let edited = r#"{"path":"a.txt","edits":[{"oldText":"old\n","newText":"new\n"#;
    check("edit", edited, "", &["edit a.txt\n", "old\n", "new\n", "✗ Operation aborted"]);
    check("bash", r#"{"command":"make all"}"#, "stream ended", &["$ make all\n", "stream ended"]);
}

#[test]
fn a_call_with_invalid_arguments_shows_those_that_can_be_read() {
    let call = ToolCall::from_text("c", "read", r#"{"path":"notes.md","#);
    let reason = call.arguments_error.clone().unwrap();
    insta::assert_snapshot!(called(&call, error(&call, &reason)).text(60), @r#"
    |
    |
    | read notes.md
    |
    | ✗ EOF while parsing a value at line 1 column 19
    |
    |   Received arguments:
    |   {"path":"notes.md",
    |
    "#);
}

#[test]
fn progress_of_a_command_is_written_over_while_it_runs_as_afterwards() {
    let id = BashId::default;
    let mut stage = TranscriptStage::new();
    stage.event(SessionEvent::BashStarted { id: id(), command: "make".into(), exclude_from_context: false });
    for chunk in ["start\n 10%", "\r 50%\r 99%", "\r100%"] {
        stage.event(SessionEvent::BashOutput { id: id(), chunk: chunk.into() });
    }
    let running = stage.text(40);
    let output = "start\n100%".to_owned();
    let execution =
        BashExecution { command: "make".into(), output, exit_code: Some(0), ..Default::default() };
    stage.event(SessionEvent::BashEnded { id: id(), execution: Arc::new(execution) });
    assert_eq!(stage.text(40), running);
    insta::assert_snapshot!(running, @"
    |
    | │ $ make
    | │
    | │ start
    | │ 100%
    ");
}

#[test]
fn saved_output_of_a_command_without_its_middle_says_so() {
    let execution = BashExecution {
        command: "yes".into(),
        output: "y".to_owned(),
        exit_code: Some(0),
        truncated: true,
        full_output_path: Some("/tmp/pi-bash-1.log".to_owned()),
        left_out_bytes: Some(3 << 20),
        ..Default::default()
    };
    let mut stage = TranscriptStage::new();
    stage.event(SessionEvent::BashEnded { id: BashId::default(), execution: Arc::new(execution) });
    let text = stage.text(100);
    let note = "Output truncated. Output without 3.0MB in the middle: /tmp/pi-bash-1.log; /output shows it";
    assert!(text.contains(note), "{text}");
}

#[test]
fn commands_of_the_user() {
    let mut stage = TranscriptStage::new();
    let started = |command: &str, exclude_from_context| SessionEvent::BashStarted {
        id: BashId::default(),
        command: command.to_owned(),
        exclude_from_context,
    };
    let ended = |execution: BashExecution| SessionEvent::BashEnded {
        id: BashId::default(),
        execution: Arc::new(execution),
    };
    stage
        .event(started("seq 25", false))
        .event(SessionEvent::BashOutput { id: BashId::default(), chunk: numbered(25) });
    insta::assert_snapshot!(stage.text(40), @"
    |
    | │ $ seq 25
    | │
    | │ … (5 earlier lines, ctrl+o)
    | │ line 6
    | │ line 7
    | │ line 8
    | │ line 9
    | │ line 10
    | │ line 11
    | │ line 12
    | │ line 13
    | │ line 14
    | │ line 15
    | │ line 16
    | │ line 17
    | │ line 18
    | │ line 19
    | │ line 20
    | │ line 21
    | │ line 22
    | │ line 23
    | │ line 24
    | │ line 25
    ");
    let execution = BashExecution { command: "seq 2".into(), output: numbered(2), ..Default::default() };
    stage.event(ended(BashExecution { exit_code: Some(3), duration_ms: Some(1_200), ..execution.clone() }));
    insta::assert_snapshot!(stage.text(40), @"
    |
    | │ $ seq 25
    | │
    | │ line 1
    | │ line 2
    | │
    | │ ✗ Command exited with code 3
    | │ Took 1.2s
    ");
    stage.event(started("env", true));
    stage.event(ended(BashExecution { exclude_from_context: Some(true), cancelled: true, ..execution }));
    insta::assert_snapshot!(stage.text(40), @"
    |
    | │ $ seq 25
    | │
    | │ line 1
    | │ line 2
    | │
    | │ ✗ Command exited with code 3
    | │ Took 1.2s
    |
    | │ $ env (not shown to the model)
    | │
    | │ line 1
    | │ line 2
    | │
    | │ – Command cancelled
    ");
}

#[test]
fn what_cannot_be_seen_in_a_notice_is_spelt_out() {
    let mut stage = TranscriptStage::new();
    for level in [NoticeLevel::Warning, NoticeLevel::Error] {
        stage
            .transcript
            .notice(level, "theme \"da\u{1b}[31mrk\": there is no\n\tda\u{1b}[31mrk.json\u{202e}");
    }
    insta::assert_snapshot!(stage.text(60), @r#"
    |
    | Warning: theme "da<U+001B>[31mrk": there is no
    |    da<U+001B>[31mrk.json<U+202E>
    |
    | Error: theme "da<U+001B>[31mrk": there is no
    |    da<U+001B>[31mrk.json<U+202E>
    "#);
}

#[test]
fn notices_that_were_read_or_are_about_the_same_are_replaced_until_something_follows() {
    let mut stage = TranscriptStage::new();
    for (level, text) in [
        (NoticeLevel::Info, "Thinking level: low"),
        (NoticeLevel::Info, "Thinking level: high"),
        (NoticeLevel::Warning, "line 3 of the session file could not be read"),
        (NoticeLevel::Error, "no key for acme"),
        (NoticeLevel::Info, "Model: m-1"),
        (NoticeLevel::Info, "Found local models."),
    ] {
        stage.transcript.notice(level, text);
    }
    stage.agent(AgentEvent::MessageEnd(Arc::new(user("go on"))));
    stage.transcript.notice(NoticeLevel::Info, "Exported");
    stage.transcript.was_read = true;
    stage.transcript.notice(NoticeLevel::Info, "Copied");
    insta::assert_snapshot!(stage.text(40), @"
    |
    | Thinking level: high
    |
    | Warning: line 3 of the session file
    | could not be read
    |
    | Error: no key for acme
    |
    | Model: m-1
    |
    | Found local models.
    |
    |
    | go on
    |
    |
    | Copied
    ");
}

#[test]
fn summaries_and_custom_messages() {
    let mut stage = TranscriptStage::new();
    let mut append = |body: EntryBody| {
        let entry = Entry { id: EntryId::new("x"), parent_id: None, timestamp: String::new(), body };
        stage.event(SessionEvent::EntryAppended(Arc::new(entry)));
    };
    let parse = |body: Value| serde_json::from_value::<Compaction>(body).unwrap();
    append(EntryBody::Compaction(Box::new(parse(
        json!({ "summary": "## Goal\n\nShip it.", "tokensBefore": 111_616 }),
    ))));
    let branch: BranchSummary = serde_json::from_value(json!({ "summary": "Tried a thing." })).unwrap();
    append(EntryBody::BranchSummary(Box::new(branch)));
    let custom = json!({ "customType": "note", "content": "Remember.", "display": true });
    let custom: CustomMessage = serde_json::from_value(custom).unwrap();
    append(EntryBody::CustomMessage(Box::new(custom.clone())));
    append(EntryBody::CustomMessage(Box::new(CustomMessage { display: false, ..custom })));
    insta::assert_snapshot!(stage.text(40), @"
    |
    |
    | [compaction] Compacted from 111,616
    | tokens (ctrl+o to expand)
    |
    |
    |
    | [branch] Summary of an abandoned
    | branch (ctrl+o to expand)
    |
    |
    |
    | [note]
    |
    | Remember.
    |
    ");
    insta::assert_snapshot!(stage.expanded(true).text(80), @"
    |
    |
    | [compaction] Compacted from 111,616 tokens
    |
    | Goal
    |
    | Ship it.
    |
    |
    |
    | [branch] Summary of an abandoned branch
    |
    | Tried a thing.
    |
    |
    |
    | [note]
    |
    | Remember.
    |
    ");
}

/// The texts of row `index` whose style passes `test`.
fn spans(stage: &TranscriptStage, index: usize, test: impl Fn(ratatui::style::Style) -> bool) -> Vec<String> {
    let row = stage.transcript.row(index);
    let spans = row.line.spans.iter().filter(|span| test(span.style));
    spans.map(|span| span.content.to_string()).collect()
}

#[test]
fn what_differs_within_a_line_is_set_off() {
    let edit = call("edit", json!({ "path": "x" }));
    let marked = |style: ratatui::style::Style| style.add_modifier.contains(ratatui::style::Modifier::BOLD);
    let check = |diff: &str, expected: [&[&str]; 2]| {
        let details = Some(json!({ "diff": diff }));
        let mut stage = called(&edit, ToolResultMessage { details, ..result(&edit, "done") });
        stage.layout(80);
        // Below the gap, the edge of the box, the title and a blank row.
        assert_eq!([spans(&stage, 4, marked), spans(&stage, 5, marked)], expected);
    };
    check("-1 let a = one(b);\n+1 let a = two(b);", [&["one"], &["two"]]);
    check(
        "-1   let a = one(b);\n+1   completely different",
        [&["let a = one(b);"], &["completely different"]],
    );
    check("-1 let a = one(b);\n+1 let a = two(b);\n+2 more", [&["one"], &["two"]]);
}

#[test]
fn diff_of_a_call_looks_the_same_before_and_after_it_ran() {
    let edits = json!([{ "oldText": "let a = 1;\nlet b;\n", "newText": "let a = 2;\nlet b;\nlet c;\n" }]);
    let edit = call("edit", json!({ "path": "x.rs", "edits": edits }));
    let drawn = |stage: &mut TranscriptStage| {
        stage.layout(40);
        let lines = (4..8).map(|index| {
            let spans = stage.transcript.row(index).line.spans.clone();
            // Without the edge of the box, sign and number.
            let text = spans.into_iter().skip(2).filter(|span| !span.content.trim().is_empty());
            text.map(|span| (span.content.replace(' ', ""), span.style)).collect::<Vec<_>>()
        });
        lines.collect::<Vec<_>>()
    };
    let mut running = TranscriptStage::new();
    running.run_call(&edit);
    let details = Some(json!({ "diff": "-1 let a = 1;\n+1 let a = 2;\n 2 let b;\n+3 let c;" }));
    let mut done = called(&edit, ToolResultMessage { details, ..result(&edit, "done") });
    let (before, after) = (drawn(&mut running), drawn(&mut done));
    let texts = |lines: &[Vec<(String, ratatui::style::Style)>]| -> Vec<String> {
        lines.iter().map(|line| line.iter().map(|(text, _)| text.as_str()).collect()).collect()
    };
    assert_eq!(texts(&before), ["leta=1;", "leta=2;", "letb;", "letc;"]);
    assert_eq!(texts(&before), texts(&after));
    let changed = |lines: &[Vec<(String, ratatui::style::Style)>]| {
        [lines[0].clone(), lines[1].clone(), lines[3].clone()]
    };
    assert_eq!(changed(&before), changed(&after));
}

#[test]
fn call_that_never_ran_has_no_duration_live_or_resumed() {
    let bash = call("bash", json!({ "command": "make" }));
    let skipped = ToolResultMessage { duration_ms: None, ..error(&bash, crate::agent::SKIPPED_CALL) };
    let mut live = TranscriptStage::new();
    live.run_call(&bash).wait(2_000);
    live.agent(AgentEvent::ToolEnd { call_id: bash.id.clone(), result: Arc::new(skipped.clone()) });
    let mut resumed = called(&bash, skipped);
    insta::assert_snapshot!(live.text(60), @"
    |
    |
    | $ make
    |
    | – Skipped due to queued user message.
    |
    ");
    assert_eq!(resumed.text(60), live.text(60));
}

#[test]
fn what_cannot_be_seen_is_spelt_out_in_calls_and_commands() {
    let check = |name: &str, arguments: Value, expected: &[&str]| {
        let call = call(name, arguments);
        let mut running = TranscriptStage::new();
        for shown in [running.run_call(&call).text(60), called(&call, result(&call, "a\u{1b}[31mb")).text(60)]
        {
            let shown = shown.replace(" …", "");
            assert!(expected.iter().all(|row| shown.lines().any(|line| line == *row)), "{shown}");
        }
    };
    check(
        "bash",
        json!({ "command": "echo \u{202e} rtl \u{1b}[2J" }),
        &["| $ echo <U+202E> rtl <U+001B>[2J"],
    );
    check("read", json!({ "path": "evil\u{1b}[31mna\nme" }), &["| read evil<U+001B>[31mna<U+000A>me"]);
    check(
        "grep",
        json!({ "pattern": "a\u{202e}", "path": "b\u{200b}" }),
        &["| grep /a<U+202E>/ in b<U+200B>"],
    );
    let edits = json!([{ "oldText": "hi", "newText": "h\u{1b}[2Ji\u{202e}" }]);
    check("edit", json!({ "path": "x", "edits": edits }), &["| -hi", "| +h<U+001B>[2Ji<U+202E>"]);
    let content = "a\u{200b}\tb\r\n\u{7f}";
    check("write", json!({ "path": "x", "content": content }), &["| a<U+200B>   b", "| <U+007F>"]);
    check("deploy", json!({ "to": "prod\u{2066}" }), &["| deploy to=prod<U+2066>"]);
    let mut stage = TranscriptStage::new();
    stage.event(SessionEvent::BashStarted {
        id: BashId::default(),
        command: "rm \u{202e}txt".into(),
        exclude_from_context: false,
    });
    assert!(stage.text(60).contains("$ rm <U+202E>txt"));
    // What was printed stays as it is.
    let bash = call("bash", json!({ "command": "ls" }));
    assert!(called(&bash, result(&bash, "a\u{1b}[31mb\u{202e}c")).text(60).contains("| abc"));
}

#[test]
fn the_box_shows_how_the_call_went() {
    let ls = call("ls", json!({}));
    let background = |stage: &mut TranscriptStage| {
        stage.layout(40);
        stage.transcript.row(1).line.spans[0].style.bg
    };
    let mut running = TranscriptStage::new();
    running.run_call(&ls);
    let color = |token| running.theme.color(token);
    let [pending, success, failure] =
        [Token::ToolPendingBg, Token::ToolSuccessBg, Token::ToolErrorBg].map(color);
    assert_eq!(background(&mut running), pending);
    assert_eq!(background(&mut called(&ls, result(&ls, "a"))), success);
    assert_eq!(background(&mut called(&ls, error(&ls, "a"))), failure);
}

#[test]
fn code_is_coloured_from_the_first_frame_on() {
    let write = call("write", json!({ "path": "a.rs", "content": "fn main() {}" }));
    let mut stage = called(&write, result(&write, "done"));
    let keyword = stage.theme.color(Token::SyntaxKeyword);
    stage.layout(40);
    assert_eq!(spans(&stage, 4, |style| style.fg == keyword), ["fn"]);
}

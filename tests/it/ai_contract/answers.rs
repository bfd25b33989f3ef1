//! How answers are read.

use pi::ai::{AssistantBlock, StopReason, is_retryable};
use serde_json::json;

use super::{content_of, everything, outline, read, read_pieces, runnable, usage};
use crate::support::dialects::{
    Call, Dialect, End, Lack, RESPONSE_ID, ROWS, Refusal, SERVED, Script, Step, decode,
};

/// Fails unless every row decodes the script to its expected content, ending with `stop`.
#[track_caller]
fn check(script: impl Fn(&dyn Dialect) -> Option<Script>, stop: StopReason) {
    let mut n_rows = 0;
    for row in ROWS {
        let Some(script) = script(*row) else { continue };
        let message = read(*row, &script);
        assert_eq!(outline(&message), content_of(&script, row.refusal()), "{}", row.api());
        assert_eq!(message.stop_reason, stop, "{}: {:?}", row.api(), message.error_message);
        n_rows += 1;
    }
    assert!(n_rows >= ROWS.len() / 2, "{n_rows} rows are not worth a case");
}

fn call(id: &'static str, name: &'static str, pieces: &[&'static str]) -> Call {
    Call { id, name, pieces: pieces.to_vec() }
}

#[test]
fn texts_are_put_together() {
    check(|_| Some(Script::new([Step::Text(vec!["Hel", "lo", "\n\nworld"])])), StopReason::Stop);
}

#[test]
fn an_answer_says_who_gave_it() {
    for row in ROWS {
        let message = read(*row, &Script::new([Step::Text(vec!["a"])]));
        assert!(message.raw_stop_reason.is_some(), "{}", row.api());
        assert_eq!((message.model.as_str(), message.api.as_str()), (row.model_ids()[0], row.api()));
        if row.lacks().contains(&Lack::Identity) {
            assert_eq!((message.response_id, message.response_model), (None, None), "{}", row.api());
            continue;
        }
        assert_eq!(message.response_id.as_deref(), Some(RESPONSE_ID), "{}", row.api());
        assert_eq!(message.response_model.as_deref(), Some(SERVED), "{}", row.api());
    }
}

#[test]
fn thinking_comes_before_the_text_and_keeps_its_signature() {
    let script = |row: &dyn Dialect| {
        let signature = (!row.lacks().contains(&Lack::Signatures)).then_some("c2lnbmF0dXJl");
        Script::new([Step::Thinking { pieces: vec!["Let me", " see"], signature }, Step::Text(vec!["a"])])
    };
    check(|row| Some(script(row)), StopReason::Stop);
    for row in ROWS.iter().filter(|row| !row.lacks().contains(&Lack::Signatures)) {
        let message = read(*row, &script(*row));
        let AssistantBlock::Thinking(thinking) = &message.content[0] else { panic!("{message:?}") };
        assert_eq!(row.signature(thinking).as_deref(), Some("c2lnbmF0dXJl"), "{}", row.api());
    }
}

#[test]
fn calls_are_read_one_many_and_without_arguments() {
    let one = || call("aaaaaaaa1", "read", &["{\"path\":\"a\"}"]);
    check(|_| Some(Script::new([Step::Calls(vec![one()])])), StopReason::ToolUse);
    check(|_| Some(Script::new([Step::Calls(vec![call("aaaaaaaa1", "list", &[""])])])), StopReason::ToolUse);
    check(
        |_| Some(Script::new([Step::Calls(vec![call("aaaaaaaa1", "list", &["{}"])])])),
        StopReason::ToolUse,
    );
    let many = || {
        let other = call("aaaaaaaa2", "read", &["{\"path\":", "\"b\",", "\"n\":[1,{\"x\":null}]}"]);
        Step::Calls(vec![one(), other, call("aaaaaaaa3", "list", &[])])
    };
    check(|_| Some(Script::new([Step::Text(vec!["Both."]), many()])), StopReason::ToolUse);
    for row in ROWS {
        let message = read(*row, &Script::new([many()]));
        assert_eq!(runnable(&message), ["read", "read", "list"], "{}", row.api());
    }
}

#[test]
fn arguments_arrive_in_pieces() {
    let pieces = ["", "{\"te", "xt\":\"a\\", "\"b\\u00", "e9 é", "\",\"n\":1", "2}"];
    let script = |row: &dyn Dialect| {
        let call = call("aaaaaaaa1", "say", &pieces);
        (!row.lacks().contains(&Lack::ArgumentPieces)).then(|| Script::new([Step::Calls(vec![call])]))
    };
    check(script, StopReason::ToolUse);
}

#[test]
fn broken_arguments_are_quoted_and_not_used() {
    for (text, says) in [
        ("{\"path\":", "EOF"),
        ("{\"path\" \"a\"}", "expected `:`"),
        ("[1]", "expected a JSON object, found an array"),
        ("\"a\"", "expected a JSON object, found a string"),
    ] {
        for row in ROWS.iter().filter(|row| !row.lacks().contains(&Lack::BrokenArguments)) {
            let calls = vec![call("aaaaaaaa1", "bad", &[text]), call("aaaaaaaa2", "good", &["{}"])];
            let message = read(*row, &Script::new([Step::Calls(calls)]));
            let bad = message.tool_calls().next().unwrap();
            let error = bad.arguments_error.as_deref().unwrap();
            assert!(error.contains(says), "{}: {error}", row.api());
            assert!(error.ends_with(&format!("Received arguments:\n{text}")), "{}: {error}", row.api());
            assert_eq!(bad.arguments, json!({}), "{}", row.api());
            assert_eq!(runnable(&message), ["good"], "{}", row.api());
            assert_eq!(message.stop_reason, StopReason::ToolUse, "{}", row.api());
        }
    }
}

#[test]
fn raw_control_characters_in_arguments_are_repaired() {
    let script = |row: &dyn Dialect| {
        let call = call("aaaaaaaa1", "say", &["{\"text\":\"a\tb", "\nc\"}"]);
        (!row.lacks().contains(&Lack::BrokenArguments)).then(|| Script::new([Step::Calls(vec![call])]))
    };
    for row in ROWS {
        let Some(script) = script(*row) else { continue };
        let message = read(*row, &script);
        let call = message.tool_calls().next().unwrap();
        assert_eq!(
            (&call.arguments, &call.arguments_error),
            (&json!({"text": "a\tb\nc"}), &None),
            "{}",
            row.api()
        );
    }
}

#[test]
fn tokens_are_counted_once() {
    for row in ROWS {
        let tokens = usage(*row);
        let message = read(*row, &everything(*row));
        let usage = &message.usage;
        let counted = [usage.input, usage.output, usage.cache_read, usage.cache_write];
        assert_eq!(
            counted,
            [tokens.input, tokens.output, tokens.cache_read, tokens.cache_write],
            "{}",
            row.api()
        );
        assert_eq!(usage.reasoning.unwrap_or(0), tokens.reasoning, "{}", row.api());
        assert_eq!(usage.total_tokens, counted.iter().sum::<u64>(), "{}", row.api());
    }
}

#[test]
fn a_refusal_is_said_or_is_the_failure() {
    for row in ROWS {
        let script = Script::new([]).end(End::Refused("I must not."));
        let message = read(*row, &script);
        match row.refusal() {
            Refusal::Said => {
                assert_eq!(message.texts().collect::<Vec<_>>(), ["I must not."], "{}", row.api());
                assert_eq!(message.stop_reason, StopReason::Stop, "{}", row.api());
            }
            Refusal::Failed => {
                let error = message.error_message.as_deref().unwrap();
                let words = !row.lacks().contains(&Lack::RefusalWords);
                assert!(!words || error.contains("I must not."), "{}: {error}", row.api());
                assert!(!is_retryable(&message), "{}: {error}", row.api());
            }
        }
    }
}

#[test]
fn an_answer_that_was_too_long_runs_nothing() {
    for row in ROWS {
        let arguments = if row.lacks().contains(&Lack::BrokenArguments) { "{}" } else { "{\"path\":\"a" };
        let cut = Step::Calls(vec![call("aaaaaaaa1", "read", &[arguments])]);
        let message = read(*row, &Script::new([Step::Text(vec!["Well"]), cut]).end(End::Length));
        assert_eq!(message.stop_reason, StopReason::Length, "{}", row.api());
        assert_eq!(message.texts().collect::<Vec<_>>(), ["Well"], "{}", row.api());
        assert_eq!(runnable(&message), [""; 0], "{}", row.api());
    }
}

#[test]
fn an_error_in_the_middle_keeps_what_had_come() {
    for row in ROWS {
        let script = everything(*row).end(End::Failed("Overloaded, come back later"));
        let message = read(*row, &script);
        let error = message.error_message.clone().unwrap();
        assert_eq!(message.stop_reason, StopReason::Error, "{}", row.api());
        assert!(error.contains("Overloaded, come back later"), "{}: {error}", row.api());
        assert!(is_retryable(&message), "{}: {error}", row.api());
        let texts: String = message.texts().collect();
        assert!(texts.starts_with("é漢🦀"), "{}: {texts}", row.api());
        assert_eq!(runnable(&message), [""; 0], "{}", row.api());
    }
}

#[test]
fn a_stream_without_its_end_is_a_failure_that_may_pass() {
    for row in ROWS {
        for script in [everything(*row), Script::new([Step::Text(vec!["Hel"])]), Script::new([])] {
            let message = read(*row, &script.end(End::Missing));
            assert_eq!(message.stop_reason, StopReason::Error, "{}", row.api());
            assert!(is_retryable(&message), "{}: {:?}", row.api(), message.error_message);
            assert_eq!(runnable(&message), [""; 0], "{}", row.api());
        }
    }
}

/// Short, since it is read once per byte of it.
fn brief(row: &dyn Dialect) -> Script {
    let signature = (!row.lacks().contains(&Lack::Signatures)).then_some("c2ln");
    Script::new([
        Step::Thinking { pieces: vec!["hm"], signature },
        Step::Text(vec!["é🦀", "\u{200d}漢"]),
        Step::Calls(vec![call("aaaaaaaa1", "read", &["{\"path\":", "\"ä🦀\"}"])]),
    ])
}

/// Only whole answers may have calls to run, and then all of them.
#[test]
fn a_call_that_is_not_whole_never_runs() {
    for row in ROWS {
        let body = row.frames(&brief(*row)).concat();
        let whole = read_pieces(*row, [body.as_slice()]);
        for end in 0..body.len() {
            let message = read_pieces(*row, [&body[..end]]);
            let runs = runnable(&message);
            if runs.is_empty() {
                continue;
            }
            assert_eq!(outline(&message), outline(&whole), "{} cut at {end}", row.api());
            assert_eq!(runs, ["read"], "{} cut at {end}", row.api());
        }
        assert_eq!(runnable(&whole), ["read"], "{}", row.api());
    }
}

#[test]
fn answers_are_the_same_wherever_the_bytes_are_cut() {
    for row in ROWS {
        let script = brief(*row);
        let body = row.frames(&script).concat();
        let whole = read_pieces(*row, [body.as_slice()]);
        assert_eq!(outline(&whole), content_of(&script, row.refusal()), "{}", row.api());
        assert_eq!(read_pieces(*row, body.chunks(1)), whole, "{} byte by byte", row.api());
        for at in 0..body.len() {
            let (head, tail) = body.split_at(at);
            assert_eq!(read_pieces(*row, [head, tail]), whole, "{} cut at {at}", row.api());
        }
    }
}

#[test]
fn what_is_unknown_or_empty_changes_nothing() {
    for row in ROWS {
        let with = everything(*row);
        let mut without = with.clone();
        without.steps.retain(|step| !matches!(step, Step::Unknown));
        for step in &mut without.steps {
            match step {
                Step::Text(pieces) | Step::Thinking { pieces, .. } => {
                    pieces.retain(|piece| !piece.is_empty());
                }
                Step::Calls(calls) => {
                    calls.iter_mut().for_each(|call| call.pieces.retain(|piece| !piece.is_empty()));
                }
                Step::Unknown => {}
            }
        }
        assert_eq!(outline(&read(*row, &with)), outline(&read(*row, &without)), "{}", row.api());
        let events = decode(*row, &with);
        assert!(!format!("{events:?}").contains("never shown"), "{}", row.api());
    }
}

#[test]
fn an_answer_may_be_empty() {
    check(|_| Some(Script::new([])), StopReason::Stop);
}

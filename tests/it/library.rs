//! The examples of the library print what `docs/library.md` promises, and the page shows
//! their code.

#![expect(clippy::unwrap_used, reason = "a test ends where something is not as it must be")]

use std::io::Write;
use std::path::Path;

use crate::docs::{assert_generated, root};

/// The programs in `examples`, as modules: `cargo test --test it` builds none of them.
macro_rules! examples {
    ($($name:ident $path:literal),*) => {
        $(
            #[path = $path]
            #[allow(dead_code, unreachable_pub, reason = "its main is for cargo run --example")]
            mod $name;
        )*
    };
}

examples!(
    custom_provider "../../examples/custom_provider.rs",
    custom_tool "../../examples/custom_tool.rs",
    front_end "../../examples/front_end.rs",
    read_session "../../examples/read_session.rs",
    steering "../../examples/steering.rs",
    two_sessions "../../examples/two_sessions.rs"
);

/// What an example prints, run in an empty project.
async fn printed(run: impl AsyncFnOnce(&Path, &mut dyn Write) -> anyhow::Result<()>) -> String {
    let project = tempfile::tempdir().unwrap();
    let mut out = Vec::new();
    run(project.path(), &mut out).await.unwrap();
    String::from_utf8(out).unwrap().replace(&*project.path().to_string_lossy(), "PROJECT")
}

#[tokio::test]
async fn a_model_calls_a_tool_of_the_program() {
    insta::assert_snapshot!(printed(async |project, out| custom_tool::run(project, out).await).await, @r#"
    Your notes have four words. (after 1 call of the tool)
    "#);
}

#[tokio::test]
async fn a_provider_of_the_program_answers() {
    insta::assert_snapshot!(printed(async |project, out| custom_provider::run(project, out).await).await, @r#"
    parrot: You said: Hello!
    parrot: You said: Who is a pretty bird?
    "#);
}

#[tokio::test]
async fn a_front_end_of_the_program_shows_a_session_and_answers_questions() {
    insta::assert_snapshot!(printed(async |project, out| front_end::run(project, out).await).await, @r#"
    > create hello.txt with hello world
    Is there a `hello.txt` already?
    [bash {"command":"test -e hello.txt -o -L hello.txt && echo exists || echo new"}]
    Run bash? Allow
    No: I'll create `hello.txt`.
    [write {"path":"hello.txt","content":"hello world\n"}]
    Run write? Allow
    `hello.txt` is written. Try: `replace hello with goodbye in hello.txt`.
    (2 tool calls so far)
    > read hello.txt
    I'll read `hello.txt`.
    [read {"path":"hello.txt"}]
    `hello.txt` has 1 line and 2 words. It begins with:

    > hello world

     A real model would tell you what it means.
    (3 tool calls so far)
    "#);
}

#[tokio::test]
async fn a_program_steers_the_agent_while_it_works() {
    insta::assert_snapshot!(printed(async |project, out| steering::run(project, out).await).await, @r#"
    user:  Write a program that draws shapes.
    model: I start with a class for each shape.
    user:  In Rust, please.
    "#);
}

#[tokio::test]
async fn a_program_reads_the_steps_of_a_session() {
    let printed = printed(async |project, out| read_session::run(project, out).await).await;
    let (steps, tokens) = printed.rsplit_once("4 answers, ").unwrap();
    // Their number depends on the length of the temporary path.
    assert!(tokens.ends_with(" output tokens\n"), "{tokens}");
    insta::assert_snapshot!(steps, @r#"
    > replace square with triangle in shapes.txt
      step 0: edit {"path":"shapes.txt","edits":[{"oldText":"square","newText":"triangle"}]} (ok)
      step 0: I'll change `shapes.txt`.
      step 1: Done: `square` is now `triangle` in `shapes.txt`.
    > read missing.txt
      step 0: read {"path":"missing.txt"} (failed)
      step 0: I'll read `missing.txt`.
      step 1: That did not work: File not found: PROJECT/missing.txt
    edit: 1 calls, 0 failed
    read: 1 calls, 1 failed
    "#);
}

#[tokio::test]
async fn two_sessions_work_side_by_side() {
    insta::assert_snapshot!(printed(async |project, out| two_sessions::run(project, out).await).await, @r#"
    first:  `poem.txt` is written. Try: `replace hello with goodbye in poem.txt`.
    second: `poem.txt` is written. Try: `replace hello with goodbye in poem.txt`.
    roses are red
    violets are blue
    "#);
}

#[test]
fn the_page_shows_the_code_of_the_examples() {
    for name in ["custom_tool", "custom_provider", "front_end", "steering", "read_session", "two_sessions"] {
        let source = std::fs::read_to_string(root().join(format!("examples/{name}.rs"))).unwrap();
        let code = source.split_once("\n\nuse ").unwrap().1;
        let code = code.split("\n#[tokio::main]").next().unwrap();
        assert_generated("docs/library.md", name, &format!("```rust\nuse {}\n```", code.trim_end()));
    }
}

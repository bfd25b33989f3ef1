//! Images of messages: pictures in terminals that show them, lines of text elsewhere.

use std::sync::Weak;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;

use crate::ai::Image;
use crate::util::image::png_of_rgba;

use super::super::super::pictures::{PictureQueue, PictureRequest, PictureView};
use super::*;

const PLACEHOLDER: char = '\u{10eeee}';

fn image(width: u32, height: u32) -> Image {
    let pixels = vec![7; usize::try_from(width * height * 4).unwrap()];
    Image::new(STANDARD.encode(png_of_rgba(width, height, pixels).unwrap()), "image/png")
}

fn with_image(call: &ToolCall) -> ToolResultMessage {
    let mut result = result(call, "Read image file [image/png]");
    result.content.push(ContentBlock::Image(image(200, 100)));
    result
}

/// Makes the terminal one with pictures, and returns what it is asked to show.
fn show_pictures(stage: &mut Stage) -> PictureQueue {
    let queue = PictureQueue::default();
    let view = PictureView { cell: (10, 20), max_columns: 60, queue: queue.clone() };
    stage.change_view(|settings| settings.pictures = Some(view));
    queue
}

/// The rows of placeholders, as columns each, and the other rows.
fn split(text: &str) -> (Vec<usize>, String) {
    let n_placeholders = |row: &str| row.chars().filter(|c| *c == PLACEHOLDER).count();
    let (pictures, others): (Vec<&str>, Vec<&str>) = text.lines().partition(|row| n_placeholders(row) > 0);
    (pictures.into_iter().map(n_placeholders).collect(), others.join("\n"))
}

#[test]
fn images_are_pictures_where_the_terminal_shows_them_and_lines_elsewhere() {
    let read = call("read", json!({"path": "a.png"}));
    let mut stage = called(&read, with_image(&read));
    let queue = show_pictures(&mut stage);
    let (rows, others) = split(&stage.text(80));
    assert_eq!(rows, [20; 5]);
    assert!(others.contains("read a.png") && !others.contains("[Image"), "{others}");
    let asked = queue.take();
    assert!(matches!(asked.as_slice(), [PictureRequest { source: Some(_), .. }]), "{asked:?}");
    // A narrow screen only needs another size of what the terminal has.
    assert_eq!(split(&stage.text(16)).0, [14; 4]);
    let again = queue.take();
    assert_eq!(again.iter().map(|request| &request.source).collect::<Vec<_>>(), [&None]);
    assert_eq!((again[0].id, again[0].size.columns, again[0].size.rows), (asked[0].id, 14, 4));

    let (rows, others) = split(&called(&read, with_image(&read)).text(80));
    assert!(rows.is_empty() && others.contains("[Image: image/png 200×100]"), "{others}");
}

#[test]
fn images_of_prompts_are_shown_below_their_text() {
    let blocks = vec![ContentBlock::text("What is this?"), ContentBlock::Image(image(20, 20))];
    let content = crate::ai::UserContent::Blocks(blocks);
    let message = UserMessage { content, ..UserMessage::new("", vec![], Millis(0)) };
    let mut stage = Stage::with([Message::User(message)]);
    let queue = show_pictures(&mut stage);
    let text = stage.text(60);
    assert_eq!(split(&text).0, [2]);
    assert!(text.find("What is this?") < text.find(PLACEHOLDER));
    assert_eq!(queue.take().len(), 1);
}

#[test]
fn damaged_images_are_lines() {
    let read = call("read", json!({"path": "a.png"}));
    let mut damaged = result(&read, "");
    damaged.content.push(ContentBlock::Image(Image::new("@@@@", "image/png")));
    let mut stage = called(&read, damaged);
    let queue = show_pictures(&mut stage);
    let (rows, others) = split(&stage.text(60));
    assert!(rows.is_empty() && others.contains("[Image: image/png]"), "{others}");
    assert!(queue.take().is_empty());
}

#[test]
fn image_bytes_leave_memory_when_the_terminal_has_the_picture_or_never_shows_it() {
    let read = call("read", json!({"path": "a.png"}));
    let stage = |shows_pictures: bool, n_after: usize| {
        let result = Arc::new(with_image(&read));
        let held: Weak<ToolResultMessage> = Arc::downgrade(&result);
        let calls = answer(StopReason::ToolUse, vec![AssistantBlock::ToolCall(read.clone())]);
        let mut messages = vec![calls, Message::ToolResult(result)];
        messages.extend((0..n_after).map(|n| user(&format!("prompt {n}"))));
        let mut stage = Stage::with(messages);
        let queue = shows_pictures.then(|| show_pictures(&mut stage));
        assert!(held.upgrade().is_some(), "it may be drawn");
        stage.layout(80);
        drop(queue.map(|queue| queue.take()));
        (stage, held)
    };
    for (shows_pictures, n_after) in [(true, 0), (false, 0), (true, 2_000)] {
        let (mut stage, held) = stage(shows_pictures, n_after);
        assert!(held.upgrade().is_none(), "{shows_pictures} {n_after}");
        stage.text(60);
    }
}

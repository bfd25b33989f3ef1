//! Images of messages: pictures in terminals that show them, lines of text elsewhere.

use std::sync::Weak;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;

use crate::ai::Image;
use crate::util::image::png_of_rgba;

use super::super::super::pictures::{PictureGallery, PictureView};
use super::*;
use crate::tui::text::PictureFormat;

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

/// Makes the terminal one with pictures, and returns those that it is asked to show.
fn show_pictures(stage: &mut TranscriptStage, format: PictureFormat) -> PictureGallery {
    let gallery = PictureGallery::default();
    let view = PictureView { cell: (10, 20), max_columns: 60, format, gallery: gallery.clone() };
    stage.change_view(|settings| settings.pictures = Some(view));
    gallery
}

/// Makes the pictures that were asked for. Returns whether each brought its image.
fn make_wanted(gallery: &PictureGallery) -> Vec<bool> {
    let wanted = gallery.take_wanted();
    wanted.into_iter().map(|request| (request.source.is_some(), request.make()).0).collect()
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
    let gallery = show_pictures(&mut stage, PictureFormat::Kitty);
    let (rows, others) = split(&stage.text(80));
    assert_eq!(rows, [20; 5]);
    assert!(others.contains("read a.png") && !others.contains("[Image"), "{others}");
    assert_eq!(make_wanted(&gallery), [true]);
    // A narrow screen only needs another size of what the terminal has.
    assert_eq!(split(&stage.text(16)).0, [14; 4]);
    assert!(make_wanted(&gallery).is_empty());

    let (rows, others) = split(&called(&read, with_image(&read)).text(80));
    assert!(rows.is_empty() && others.contains("[Image: image/png 200×100]"), "{others}");
}

#[test]
fn an_omitted_image_says_why_while_collapsed() {
    let read = call("read", json!({"path": "broken.png"}));
    let note = "[Image omitted: could not be resized below the inline image size limit.]";
    let result = result(&read, &format!("Read image file [image/png]\n{note}"));
    let mut stage = called(&read, result);
    assert!(stage.text(90).contains(note), "{}", stage.text(90));
    assert_eq!(stage.expanded(true).text(90).matches(note).count(), 1);
}

/// The rows that have a part of a picture, as its number, column and columns.
fn parts(stage: &mut TranscriptStage, width: u16) -> Vec<(u16, u16, u16)> {
    stage.layout(width);
    let row = |index| stage.transcript.row(index).picture;
    let pictures = (0..stage.transcript.len()).filter_map(row);
    pictures.map(|picture| (picture.row, picture.column, picture.key.size.columns)).collect()
}

#[test]
fn rows_with_a_picture_that_is_drawn_become_final_when_it_has_come() {
    for format in [PictureFormat::Kitty, PictureFormat::Iterm, PictureFormat::Sixel] {
        let read = call("read", json!({"path": "a.png"}));
        let mut stage = called(&read, with_image(&read));
        let gallery = show_pictures(&mut stage, format);
        let rows: Vec<(u16, u16, u16)> = (0..5).map(|row| (row, 1, 20)).collect();
        assert_eq!(parts(&mut stage, 80), rows, "its rows are there from the beginning");
        let (len, stable) = (stage.transcript.len(), stage.transcript.stable());
        assert!(stable < len, "{format:?}: rows without picture are not final");
        assert_eq!(make_wanted(&gallery), [true]);
        assert_eq!(parts(&mut stage, 80), rows);
        assert_eq!((stage.transcript.len(), stage.transcript.stable()), (len, len), "{format:?}");
        // Another width needs another picture, made of what is there.
        assert_eq!(parts(&mut stage, 16).len(), 4);
        let again = make_wanted(&gallery);
        assert_eq!(again, if format.has_placeholders() { vec![] } else { vec![false] });
        parts(&mut stage, 16);
        assert_eq!(stage.transcript.stable(), stage.transcript.len());
    }
}

#[test]
fn a_picture_that_does_not_come_becomes_its_line() {
    let read = call("read", json!({"path": "a.png"}));
    for is_leaving in [false, true] {
        let mut stage = called(&read, with_image(&read));
        let gallery = show_pictures(&mut stage, PictureFormat::Sixel);
        assert_eq!(parts(&mut stage, 80).len(), 5);
        if is_leaving {
            stage.transcript.settle();
        } else {
            drop(gallery.take_wanted());
        }
        assert!(parts(&mut stage, 80).is_empty());
        assert!(stage.text(80).contains("[Image: image/png 200×100]"));
        assert_eq!(stage.transcript.stable(), stage.transcript.len());
    }
}

#[test]
fn images_of_prompts_are_shown_below_their_text() {
    let blocks = vec![ContentBlock::text("What is this?"), ContentBlock::Image(image(20, 20))];
    let content = crate::ai::UserContent::Blocks(blocks);
    let message = UserMessage { content, ..UserMessage::new("", vec![], Millis(0)) };
    let mut stage = TranscriptStage::with([Message::User(message)]);
    let gallery = show_pictures(&mut stage, PictureFormat::Kitty);
    let text = stage.text(60);
    assert_eq!(split(&text).0, [2]);
    assert!(text.find("What is this?") < text.find(PLACEHOLDER));
    assert_eq!(make_wanted(&gallery), [true]);
}

#[test]
fn damaged_images_are_lines() {
    let read = call("read", json!({"path": "a.png"}));
    let mut damaged = result(&read, "");
    damaged.content.push(ContentBlock::Image(Image::new("@@@@", "image/png")));
    let mut stage = called(&read, damaged);
    let gallery = show_pictures(&mut stage, PictureFormat::Kitty);
    let (rows, others) = split(&stage.text(60));
    assert!(rows.is_empty() && others.contains("[Image: image/png]"), "{others}");
    assert!(gallery.take_wanted().is_empty());
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
        let mut stage = TranscriptStage::with(messages);
        let gallery = shows_pictures.then(|| show_pictures(&mut stage, PictureFormat::Kitty));
        assert!(held.upgrade().is_some(), "it may be drawn");
        stage.layout(80);
        drop(gallery.map(|gallery| make_wanted(&gallery)));
        (stage, held)
    };
    for (shows_pictures, n_after) in [(true, 0), (false, 0), (true, 2_000)] {
        let (mut stage, held) = stage(shows_pictures, n_after);
        assert!(held.upgrade().is_none(), "{shows_pictures} {n_after}");
        stage.text(60);
    }
}

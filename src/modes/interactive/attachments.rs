//! The images of the prompt that is being written. Each is named by a marker in its text,
//! `[image #1]`; one whose marker was deleted is not sent.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use percent_encoding::percent_decode_str;

use crate::ai::Image;
use crate::session::PromptDraft;
use crate::tui::composer::{IMAGE_LABEL_START, image_label};
use crate::util::paths;

/// Files that are looked at when they are dropped together.
const MAX_DROPPED: usize = 20;

/// Names of files that may be images.
const ENDINGS: [&str; 6] = ["png", "jpg", "jpeg", "gif", "webp", "bmp"];

/// The images by number. They stay until the editor is emptied for good, because undo may bring a
/// marker back.
#[derive(Debug, Default)]
pub(super) struct Attachments {
    images: BTreeMap<usize, Image>,
}

impl Attachments {
    /// Keeps an image, and returns its number.
    pub(super) fn add(&mut self, image: Image) -> usize {
        let number = self.images.last_key_value().map_or(1, |(last, _)| last + 1);
        self.images.insert(number, image);
        number
    }

    /// Takes back an image whose number no text ever had.
    pub(super) fn withdraw(&mut self, number: usize) {
        self.images.remove(&number);
    }

    pub(super) fn clear(&mut self) {
        self.images.clear();
    }

    pub(super) fn numbers(&self) -> impl Iterator<Item = usize> {
        self.images.keys().copied()
    }

    /// How many images `text` names.
    pub(super) fn count(&self, text: &str) -> usize {
        self.named(text).len()
    }

    /// How many images `text` names that are not here, as in a prompt from the history.
    pub(super) fn n_missing(&self, text: &str) -> usize {
        numbers_in(text).iter().filter(|number| !self.images.contains_key(number)).count()
    }

    /// The numbers that `text` names, in the order of their first markers.
    fn named(&self, text: &str) -> Vec<usize> {
        let mut named: Vec<(usize, usize)> =
            self.numbers().filter_map(|number| Some((text.find(&image_label(number))?, number))).collect();
        named.sort_unstable();
        named.into_iter().map(|(_, number)| number).collect()
    }

    /// The prompt as it is sent or stored: the images that `text` names, in the order of their
    /// markers. They keep their numbers, which the rest of the text may mention; if the text has
    /// markers of no image too, they are numbered from 1, so that those can be told apart.
    pub(super) fn prompt(&self, text: &str) -> PromptDraft {
        let named = self.named(text);
        let images = named.iter().filter_map(|number| self.images.get(number).cloned()).collect();
        if numbers_in(text) == named {
            return PromptDraft { text: text.to_owned(), images, ..PromptDraft::default() };
        }
        let renamed: Vec<(usize, usize)> = named.iter().copied().zip(1..).collect();
        PromptDraft { text: rename(text, &renamed), images, ..PromptDraft::default() }
    }

    /// Takes the images of a prompt over. Its text is returned with the numbers they have here,
    /// which are the same where these are free; images that it does not name are named at its end.
    pub(super) fn adopt(&mut self, prompt: PromptDraft) -> PromptDraft {
        let PromptDraft { text, images, pastes } = prompt;
        let mut numbers = numbers_in(&text);
        if numbers.len() != images.len() {
            numbers = (1..=images.len()).collect();
        }
        let is_free = numbers.iter().all(|number| !self.images.contains_key(number));
        let mut place = |number: usize, image: Image| match is_free {
            true => {
                self.images.insert(number, image);
                number
            }
            false => self.add(image),
        };
        let renamed: Vec<(usize, usize)> =
            numbers.into_iter().zip(images).map(|(old, image)| (old, place(old, image))).collect();
        let unnamed: Vec<String> = renamed
            .iter()
            .filter(|(old, _)| !text.contains(&image_label(*old)))
            .map(|(_, new)| image_label(*new))
            .collect();
        let mut adopted = rename(&text, &renamed);
        // The ranges are those of the text as it was.
        let pastes = if adopted == text { pastes } else { Vec::new() };
        for label in unnamed {
            let gap = if adopted.is_empty() || adopted.ends_with(char::is_whitespace) { "" } else { " " };
            adopted.push_str(&[gap, &label].concat());
        }
        PromptDraft { text: adopted, images: Vec::new(), pastes }
    }
}

/// The numbers of all markers in a text, also of those without an image, in the order of their first markers.
fn numbers_in(text: &str) -> Vec<usize> {
    let mut numbers = Vec::new();
    for rest in text.split(IMAGE_LABEL_START).skip(1) {
        let number = rest.split_once(']').and_then(|(number, _)| number.parse().ok());
        if let Some(number) = number.filter(|number| *number > 0 && !numbers.contains(number)) {
            numbers.push(number);
        }
    }
    numbers
}

/// The text with other numbers in its markers, all changed at once.
fn rename(text: &str, numbers: &[(usize, usize)]) -> String {
    let mut renamed = String::with_capacity(text.len());
    let mut rest = text;
    while let Some(at) = rest.find('[') {
        renamed.push_str(&rest[..at]);
        rest = &rest[at..];
        let found = numbers.iter().find(|(old, _)| rest.starts_with(&image_label(*old)));
        match found {
            Some((old, new)) => {
                renamed.push_str(&image_label(*new));
                rest = &rest[image_label(*old).len()..];
            }
            None => {
                renamed.push('[');
                rest = &rest[1..];
            }
        }
    }
    renamed.push_str(rest);
    renamed
}

/// A file that was dropped on the terminal, which pastes its path.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct DroppedFile {
    /// As it was pasted.
    pub(super) text: String,
    pub(super) path: PathBuf,
}

/// The files with names of images among the paths that a pasted text consists of. Terminals
/// quote paths, escape blanks with a backslash, or paste addresses; kitty writes each on a line of its own.
pub(super) fn dropped_images(pasted: &str, home: Option<&Path>) -> Vec<DroppedFile> {
    let lines: Option<Vec<_>> = pasted.trim().lines().map(|line| images_of_line(line.trim(), home)).collect();
    let files: Vec<DroppedFile> = lines.unwrap_or_default().into_iter().flatten().collect();
    if files.len() <= MAX_DROPPED { files } else { Vec::new() }
}

/// `None` if the line does not consist of paths.
fn images_of_line(line: &str, home: Option<&Path>) -> Option<Vec<DroppedFile>> {
    let words = shell_words(line).unwrap_or_default();
    let image = |(text, word): &(String, String)| {
        let path = absolute(word, home).filter(|path| is_image_name(path))?;
        Some(DroppedFile { text: text.clone(), path })
    };
    // A command begins with a slash too.
    let is_path = |path: &PathBuf| is_image_name(path) || path.components().count() > 2;
    let are_paths = words.iter().all(|(_, word)| absolute(word, home).is_some_and(|path| is_path(&path)));
    if are_paths && !words.is_empty() {
        return Some(words.iter().filter_map(image).collect());
    }
    bare_path(line, home).map(|file| vec![file])
}

/// The file whose path a line is as a whole: some terminals neither quote nor escape it. Whether there is such a
/// file shows when it is read.
fn bare_path(line: &str, home: Option<&Path>) -> Option<DroppedFile> {
    let is_path = ["/", "~/", "file://"].iter().any(|start| line.starts_with(start));
    let path = absolute(line, home).filter(|path| is_path && is_image_name(path))?;
    Some(DroppedFile { text: line.to_owned(), path })
}

/// The absolute path that a word is.
fn absolute(word: &str, home: Option<&Path>) -> Option<PathBuf> {
    let path = match word.strip_prefix("file://") {
        Some(address) => {
            let path = address.strip_prefix("localhost").unwrap_or(address);
            PathBuf::from(percent_decode_str(path).decode_utf8().ok()?.into_owned())
        }
        None if word.starts_with("~/") => paths::expand_home(word, home),
        None => PathBuf::from(word),
    };
    path.is_absolute().then_some(path)
}

fn is_image_name(path: &Path) -> bool {
    let ending = path.extension().and_then(|ending| ending.to_str());
    ending.is_some_and(|ending| ENDINGS.iter().any(|known| known.eq_ignore_ascii_case(ending)))
}

/// The words of a line as a shell reads them, each with how it was written. `None` if a quote
/// is open.
fn shell_words(line: &str) -> Option<Vec<(String, String)>> {
    let (mut words, mut written, mut word) = (Vec::new(), String::new(), String::new());
    let mut quote = None;
    let mut chars = line.chars();
    while let Some(c) = chars.next() {
        if c.is_whitespace() && quote.is_none() {
            if !written.is_empty() {
                words.push((std::mem::take(&mut written), std::mem::take(&mut word)));
            }
            continue;
        }
        written.push(c);
        match (quote, c) {
            (Some(open), _) if c == open => quote = None,
            (None, '"' | '\'') => quote = Some(c),
            (None, '\\') => {
                let escaped = chars.next()?;
                written.push(escaped);
                word.push(escaped);
            }
            _ => word.push(c),
        }
    }
    if !written.is_empty() {
        words.push((written, word));
    }
    quote.is_none().then_some(words)
}

#[cfg(test)]
mod tests {
    use crate::ai::Extra;

    use super::*;

    fn image(name: &str) -> Image {
        Image { data: name.to_owned(), mime_type: "image/png".to_owned(), extra: Extra::new() }
    }

    fn names(prompt: &PromptDraft) -> Vec<&str> {
        prompt.images.iter().map(|image| image.data.as_str()).collect()
    }

    #[test]
    fn images_beside_markers_of_none_are_numbered_anew_in_the_order_of_their_markers() {
        let mut attachments = Attachments::default();
        for name in ["a", "b", "c"] {
            attachments.add(image(name));
        }
        let prompt = attachments.prompt("[image #3] like [image #1], not [image #9] [image #3]");
        assert_eq!(prompt.text, "[image #1] like [image #2], not [image #9] [image #1]");
        assert_eq!(names(&prompt), ["c", "a"]);
        assert_eq!(attachments.prompt("none").images, []);
        assert_eq!(attachments.n_missing("[image #3] [image #4] [image #4] [image #x] [image #0] [image"), 1);
    }

    #[test]
    fn images_keep_the_numbers_that_the_text_mentions() {
        let mut attachments = Attachments::default();
        for name in ["cleared", "b", "c"] {
            attachments.add(image(name));
        }
        let prompt = attachments.prompt("[image #3] is like [image #2]; describe image 2");
        assert_eq!(prompt.text, "[image #3] is like [image #2]; describe image 2");
        assert_eq!(names(&prompt), ["c", "b"]);
        let mut later = Attachments::default();
        let adopted = later.adopt(prompt.clone());
        assert_eq!(adopted.text, prompt.text);
        assert_eq!(later.prompt(&adopted.text), prompt);
        // Beside another prompt there are no two with one number.
        let again = later.adopt(prompt);
        assert_eq!(again.text, "[image #4] is like [image #5]; describe image 2");
    }

    #[test]
    fn adopted_prompt_keeps_its_images_beside_those_of_the_editor() {
        let mut attachments = Attachments::default();
        attachments.add(image("mine"));
        let prompt = PromptDraft {
            text: "two: [image #2]".to_owned(),
            images: vec![image("x"), image("y")],
            pastes: vec![0..3, 4..5],
        };
        let adopted = attachments.adopt(prompt);
        assert_eq!(adopted.text, "two: [image #3] [image #2]");
        assert!(adopted.pastes.is_empty(), "they are ranges of another text");
        let text = format!("[image #1] {}", adopted.text);
        assert_eq!(names(&attachments.prompt(&text)), ["mine", "y", "x"]);
    }

    #[test]
    fn stored_prompt_comes_back_as_it_was() {
        let mut attachments = Attachments::default();
        attachments.add(image("a"));
        attachments.add(image("b"));
        let draft = attachments.prompt("[image #1] and [image #2]");
        let adopted = Attachments::default().adopt(PromptDraft { pastes: vec![0..1, 2..3], ..draft });
        assert_eq!(adopted.text, "[image #1] and [image #2]");
        assert_eq!(adopted.pastes, [0..1, 2..3]);
    }

    #[test]
    fn dropped_paths_are_recognised_however_the_terminal_writes_them() {
        let check = |pasted: &str, expected: &[&str]| {
            let found = dropped_images(pasted, Some(Path::new("/home/me")));
            let paths: Vec<&str> = found.iter().map(|file| file.path.to_str().unwrap()).collect();
            assert_eq!(paths, expected, "{pasted:?}");
            assert!(found.iter().all(|file| pasted.contains(&file.text)), "{found:?}");
        };
        check("/tmp/a.png", &["/tmp/a.png"]);
        check("'/tmp/my shot.PNG' ", &["/tmp/my shot.PNG"]);
        check("/tmp/my\\ shot.jpg /tmp/b.gif", &["/tmp/my shot.jpg", "/tmp/b.gif"]);
        check("file:///tmp/%E5%9B%BE%20a.webp", &["/tmp/图 a.webp"]);
        check("~/a.bmp", &["/home/me/a.bmp"]);
        check("/home/me/My File.png ", &["/home/me/My File.png"]);
        check("/tmp/it's mine.jpg", &["/tmp/it's mine.jpg"]);
        check("~/My File.gif", &["/home/me/My File.gif"]);
        check("file:///tmp/My%20File (1).png", &["/tmp/My File (1).png"]);
        check("a.png", &[]);
        check("/tmp/a.txt", &[]);
        check("look at /tmp/a.png", &[]);
        check("/tmp/a.png\n/tmp/b.png", &["/tmp/a.png", "/tmp/b.png"]);
        check("file:///tmp/a%20b.png\n/tmp/My File.png\n", &["/tmp/a b.png", "/tmp/My File.png"]);
        check("/tmp/a.png\n\n/tmp/b.png", &[]);
        check("/tmp/notes.txt\n/tmp/a.png", &["/tmp/a.png"]);
        check("'/tmp/my notes' /tmp/a.png", &["/tmp/a.png"]);
        check("/describe /tmp/a.png", &["/describe /tmp/a.png"]);
        check("/tmp/a.png\nand a text", &[]);
        check("/tmp/My File.png\nmore.png", &[]);
        check("My File.png", &[]);
        check("'/tmp/a.png", &[]);
        check("", &[]);
    }
}

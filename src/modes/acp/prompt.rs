//! Turns the content of a prompt into text and images.

use std::path::{Path, PathBuf};

use agent_client_protocol_schema::v1::{ContentBlock, EmbeddedResourceResource, Error, ImageContent};
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use percent_encoding::percent_decode_str;

use crate::ai::{Extra, Image};
use crate::session::PromptDraft;

use super::methods::invalid_params;

/// The prompt as the model reads it. Mentioned files stay where they are in the text, by
/// their path; the contents of embedded ones follow after it.
///
/// # Errors
/// If a block has a kind that pi does not offer, or data that is not base64.
pub(super) fn draft(blocks: Vec<ContentBlock>, cwd: &Path) -> Result<PromptDraft, Error> {
    let mut draft = PromptDraft::default();
    let mut embedded = Vec::new();
    for block in blocks {
        match block {
            ContentBlock::Text(text) => draft.text.push_str(&text.text),
            ContentBlock::ResourceLink(link) => draft.text.push_str(&mention(&link.uri, &link.name, cwd)),
            ContentBlock::Image(image) => match (image.data.is_empty(), &image.uri) {
                (true, Some(uri)) => draft.text.push_str(&mention(uri, "image", cwd)),
                _ => draft.images.push(to_image(image)?),
            },
            ContentBlock::Resource(resource) => match resource.resource {
                EmbeddedResourceResource::TextResourceContents(text) => {
                    let name = file_name(&text.uri, cwd);
                    draft.text.push_str(&mention(&text.uri, &text.uri, cwd));
                    embedded.push(format!("<file name=\"{name}\">\n{}\n</file>", text.text));
                }
                EmbeddedResourceResource::BlobResourceContents(blob) => {
                    draft.text.push_str(&mention(&blob.uri, &blob.uri, cwd));
                    match blob.mime_type {
                        Some(mime) if mime.starts_with("image/") => {
                            draft.images.push(to_image(ImageContent::new(blob.blob, mime))?);
                        }
                        _ => {
                            let name = file_name(&blob.uri, cwd);
                            embedded
                                .push(format!("<file name=\"{name}\">[Binary content was left out.]</file>"));
                        }
                    }
                }
                _ => return Err(unsupported("this kind of resource")),
            },
            ContentBlock::Audio(_) => return Err(unsupported("audio")),
            _ => return Err(unsupported("this kind of content")),
        }
    }
    if !embedded.is_empty() {
        draft.text.push_str("\n\n");
        draft.text.push_str(&embedded.join("\n"));
    }
    Ok(draft)
}

fn unsupported(what: &str) -> Error {
    invalid_params(format!("session/prompt: pi does not read {what}; send text, images or files"))
}

fn to_image(image: ImageContent) -> Result<Image, Error> {
    if image.data.is_empty() || STANDARD.decode(&image.data).is_err() {
        return Err(invalid_params("session/prompt: the data of an image is not base64"));
    }
    Ok(Image { data: image.data, mime_type: image.mime_type, extra: Extra::new() })
}

/// How the text names a resource: a file by its path, anything else by name and address.
fn mention(uri: &str, name: &str, cwd: &Path) -> String {
    match file(uri) {
        Some((path, lines)) => {
            let path = relative(&path, cwd);
            // As the editor completes names: otherwise nobody sees where the path ends.
            if path.contains(char::is_whitespace) {
                format!("@\"{path}\"{lines}")
            } else {
                format!("@{path}{lines}")
            }
        }
        None if name == uri => uri.to_owned(),
        None => format!("[{name}]({uri})"),
    }
}

fn file_name(uri: &str, cwd: &Path) -> String {
    file(uri).map_or_else(|| uri.to_owned(), |(path, lines)| format!("{}{lines}", relative(&path, cwd)))
}

/// Path and lines of a file's address: `file:///a.rs#L3-7` is `/a.rs` and `:3-7`.
fn file(uri: &str) -> Option<(PathBuf, String)> {
    let rest = match uri.strip_prefix("file://") {
        Some(rest) => rest,
        None if uri.starts_with('/') => uri,
        None => return None,
    };
    let (path, fragment) = rest.split_once('#').unwrap_or((rest, ""));
    let path = percent_decode_str(path).decode_utf8_lossy();
    let lines = fragment.strip_prefix('L').map(|lines| lines.replace(":L", "-").replace(['L', ':'], "-"));
    let lines = lines.map(|lines| format!(":{}", lines.replace("--", "-"))).unwrap_or_default();
    Some((PathBuf::from(path.trim_start_matches("localhost").to_owned()), lines))
}

fn relative(path: &Path, cwd: &Path) -> String {
    let inside = path.strip_prefix(cwd).ok().filter(|inside| !inside.as_os_str().is_empty());
    inside.unwrap_or(path).display().to_string()
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;

    fn of(blocks: Value) -> Result<PromptDraft, String> {
        let blocks = serde_json::from_value(blocks).unwrap();
        draft(blocks, Path::new("/work")).map_err(|error| error.message)
    }

    #[track_caller]
    fn check(blocks: Value, expected: &str) {
        assert_eq!(of(blocks).unwrap().text, expected);
    }

    #[test]
    fn mentions_stay_in_place_and_files_follow() {
        let link = json!({"type": "resource_link", "uri": "file:///work/src/a%20b.rs", "name": "a b.rs"});
        check(
            json!([{"type": "text", "text": "look at "}, link, {"type": "text", "text": "!"}]),
            "look at @\"src/a b.rs\"!",
        );
        let web = json!({"type": "resource_link", "uri": "https://x.y/z", "name": "docs"});
        check(json!([web]), "[docs](https://x.y/z)");
        let lines =
            json!({"type": "resource", "resource": {"uri": "file:///etc/hosts#L3-7", "text": "a\nb"}});
        check(
            json!([{"type": "text", "text": "why "}, lines]),
            "why @/etc/hosts:3-7\n\n<file name=\"/etc/hosts:3-7\">\na\nb\n</file>",
        );
        let zed = json!({"type": "resource_link", "uri": "file:///work/a.rs#L3:9", "name": "a.rs (3:9)"});
        check(json!([zed]), "@a.rs:3-9");
    }

    #[test]
    fn images_are_kept_and_other_data_is_named() {
        let image = json!({"type": "image", "data": "AAAA", "mimeType": "image/png"});
        let draft = of(json!([image])).unwrap();
        assert_eq!((draft.images.len(), draft.images[0].mime_type.as_str()), (1, "image/png"));
        let blob = json!({"type": "resource", "resource": {"uri": "file:///work/x.pdf", "blob": "AAAA"}});
        check(json!([blob]), "@x.pdf\n\n<file name=\"x.pdf\">[Binary content was left out.]</file>");
        let wrong = json!({"type": "image", "data": "!", "mimeType": "image/png"});
        assert_eq!(of(json!([wrong])), Err("session/prompt: the data of an image is not base64".to_owned()));
        let audio = json!({"type": "audio", "data": "AAAA", "mimeType": "audio/wav"});
        let expected = "session/prompt: pi does not read audio; send text, images or files";
        assert_eq!(of(json!([audio])), Err(expected.to_owned()));
    }
}

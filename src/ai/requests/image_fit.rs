//! Makes the images of a request fit its service.
//!
//! A session may contain images that were sent to another model or stored by
//! another program. The conversation never changes: a request that already fits
//! is passed on unchanged, at the cost of reading image headers; otherwise a
//! copy is made. Images by URL are counted and never fetched. Results are cached,
//! so that each image is converted once and not once per request.

use std::collections::VecDeque;
use std::hash::{DefaultHasher, Hash as _, Hasher as _};
use std::sync::{Arc, Mutex, PoisonError};

use super::request::Request;
use crate::ai::messages::{ContentBlock, Image};
use crate::ai::models::{ImageRules, Model, fetches, for_storing};
use crate::util::image::{ImageLimits, ImageProblem, prepare_base64, probe};

/// Maximum size of the cache of converted images.
const MEMORY_BYTES: usize = 64 << 20;

/// Converts images and caches the results. Clones share the cache.
#[derive(Debug, Clone, Default)]
pub(in crate::ai) struct ImageFitter {
    memory: Arc<Mutex<Memory>>,
}

impl ImageFitter {
    /// `request`, or a copy whose images the service accepts.
    pub(in crate::ai) async fn fit(&self, request: &Arc<Request>) -> Arc<Request> {
        if !request.shows_images() {
            return Arc::clone(request);
        }
        let changes = plan(request, &ImageRules::of(&request.model));
        if changes.is_empty() {
            return Arc::clone(request);
        }
        let (fitter, request) = (self.clone(), Arc::clone(request));
        let original = Arc::clone(&request);
        let fitted = tokio::task::spawn_blocking(move || fitter.apply(&request, changes)).await;
        // If the conversion did not run, the service decides.
        fitted.map_or(original, Arc::new)
    }

    fn apply(&self, request: &Request, changes: Vec<Change>) -> Request {
        let mut request = request.clone();
        for Change { message, block, action } in changes {
            let Some(slot) = request.messages.get_mut(message) else { continue };
            let Some(block) = Arc::make_mut(slot).input_blocks_mut().and_then(|blocks| blocks.get_mut(block))
            else {
                continue;
            };
            match (action, &mut *block) {
                (Action::Omit(_), ContentBlock::ImageUrl(image)) => {
                    *block = ContentBlock::text(image.label());
                }
                (Action::Omit(reason), ContentBlock::Image(_)) => {
                    *block = ContentBlock::text(format!("[Image omitted: {reason}.]"));
                }
                (Action::Label(mime), ContentBlock::Image(image)) => image.mime_type = mime.to_owned(),
                (Action::Fit(limits), ContentBlock::Image(image)) => match self.prepare(image, &limits) {
                    Ok(fitted) => image.clone_from(&fitted),
                    Err(problem) => *block = ContentBlock::text(format!("[Image omitted: {problem}.]")),
                },
                (_, ContentBlock::Text(_) | ContentBlock::ImageUrl(_) | ContentBlock::Unknown(_)) => {}
            }
        }
        request
    }

    fn prepare(&self, image: &Image, limits: &ImageLimits) -> Result<Arc<Image>, ImageProblem> {
        let mut hasher = DefaultHasher::new();
        (image.data.as_str(), limits).hash(&mut hasher);
        let key = (hasher.finish(), image.data.len());
        // The lock is not held during the conversion, which takes long.
        let known = self.memory.lock().unwrap_or_else(PoisonError::into_inner).get(key);
        if let Some(known) = known {
            return known;
        }
        let prepared = prepare_base64(&image.data, limits).map(|prepared| {
            let mime_type = prepared.mime.to_owned();
            Arc::new(Image { data: prepared.data, mime_type, extra: image.extra.clone() })
        });
        self.memory.lock().unwrap_or_else(PoisonError::into_inner).put(key, prepared.clone());
        prepared
    }
}

/// Hash of image and limits, and length of the image.
type Key = (u64, usize);

/// The results, the most recently used last.
#[derive(Debug, Default)]
struct Memory {
    entries: VecDeque<(Key, Result<Arc<Image>, ImageProblem>)>,
    n_bytes: usize,
}

impl Memory {
    fn get(&mut self, key: Key) -> Option<Result<Arc<Image>, ImageProblem>> {
        let at = self.entries.iter().position(|(known, _)| *known == key)?;
        let entry = self.entries.remove(at)?;
        let found = entry.1.clone();
        self.entries.push_back(entry);
        Some(found)
    }

    fn put(&mut self, key: Key, prepared: Result<Arc<Image>, ImageProblem>) {
        let size = |prepared: &Result<Arc<Image>, ImageProblem>| {
            prepared.as_ref().map_or(0, |image| image.data.len())
        };
        self.n_bytes += size(&prepared);
        self.entries.push_back((key, prepared));
        while self.n_bytes > MEMORY_BYTES && self.entries.len() > 1 {
            if let Some((_, oldest)) = self.entries.pop_front() {
                self.n_bytes -= size(&oldest);
            }
        }
    }
}

/// The change to one image.
#[derive(Debug, Clone, PartialEq, Eq)]
struct Change {
    /// Index among the messages.
    message: usize,
    block: usize,
    action: Action,
}

#[derive(Debug, Clone, PartialEq, Eq)]
enum Action {
    Fit(ImageLimits),
    /// Corrects its media type.
    Label(&'static str),
    /// Replaces it with a text that gives the reason.
    Omit(&'static str),
}

/// The images of `request` that must change; reads headers only.
fn plan(request: &Request, rules: &ImageRules) -> Vec<Change> {
    let mut changes = Vec::new();
    let mut found = Vec::new();
    for (message, content) in request.messages.iter().enumerate() {
        let blocks = content.input_blocks().iter().enumerate();
        let images = blocks.filter_map(|(block, content)| match content {
            ContentBlock::Image(image) => Some((message, block, Some(image))),
            // An image that the service does not fetch is sent as text.
            ContentBlock::ImageUrl(image) if fetches(&request.model, image) => Some((message, block, None)),
            ContentBlock::Text(_) | ContentBlock::ImageUrl(_) | ContentBlock::Unknown(_) => None,
        });
        let images: Vec<_> = images.collect();
        let (too_many, kept) = images.split_at(images.len().saturating_sub(rules.max_per_message));
        let omit = Action::Omit("the provider limits images per message, and pi sends the last ones");
        let change =
            |(message, block, _): &_| Change { message: *message, block: *block, action: omit.clone() };
        changes.extend(too_many.iter().map(change));
        found.extend_from_slice(kept);
    }
    let sizes = found.iter().map(|(.., image)| image.map_or(0, |image| image.data.len()));
    let n_omitted = n_omitted(&sizes.collect::<Vec<_>>(), rules);
    let mut limits = rules.each;
    if let Some((many, side)) = rules.crowded
        && found.len() - n_omitted > many
    {
        limits.max_width = limits.max_width.min(side);
        limits.max_height = limits.max_height.min(side);
    }
    changes.extend(found.into_iter().enumerate().filter_map(|(at, (message, block, image))| {
        let action = if at < n_omitted {
            Action::Omit("the provider limits images per request, and pi sends the newest ones")
        } else {
            let image = image?;
            match probe(&image.data) {
                Some(probe) if !limits.admit(&probe, image.data.len()) => Action::Fit(limits),
                Some(probe) if probe.mime != image.mime_type => Action::Label(probe.mime),
                Some(_) => return None,
                None => Action::Fit(limits),
            }
        };
        Some(Change { message, block, action })
    }));
    changes
}

/// The number of images, oldest first, that one request has no room for.
///
/// Room is made in steps of a quarter: if each new image displaced one old
/// image, every request would begin differently and miss the cache.
fn n_omitted(sizes: &[usize], rules: &ImageRules) -> usize {
    let stepped = |excess: usize, most: usize| {
        let step = (most / 4).max(1);
        excess.div_ceil(step).saturating_mul(step)
    };
    let by_count = match sizes.len().saturating_sub(rules.max_images) {
        0 => 0,
        excess => stepped(excess, rules.max_images).min(sizes.len()),
    };
    // Larger ones will already have been reduced.
    let sizes = sizes.iter().map(|size| (*size).min(rules.each.max_base64_bytes));
    let total: usize = sizes.clone().sum();
    let by_size = match total.saturating_sub(rules.max_request_bytes) {
        0 => 0,
        excess => {
            let mut excess = stepped(excess, rules.max_request_bytes);
            let takes = sizes.take_while(|size| {
                let more = excess > 0;
                excess = excess.saturating_sub(*size);
                more
            });
            takes.count()
        }
    };
    by_count.max(by_size)
}

/// Makes images fit for the session file; images that already fit, which is
/// usual, stay unchanged. Each returned line describes to the model how an image
/// was changed; an unreadable image is replaced by such a line.
///
/// Limits of `model` apply first. `auto_resize` is the user's setting; without it
/// only formats change.
pub async fn fit_for_storing(
    blocks: &mut Vec<ContentBlock>,
    model: &Model,
    auto_resize: bool,
) -> Vec<String> {
    let limits = for_storing(model, auto_resize);
    let is_fine = |block: &ContentBlock| match block {
        ContentBlock::Image(image) => probe(&image.data)
            .is_some_and(|probe| limits.admit(&probe, image.data.len()) && probe.mime == image.mime_type),
        ContentBlock::Text(_) | ContentBlock::ImageUrl(_) | ContentBlock::Unknown(_) => true,
    };
    if blocks.iter().all(is_fine) {
        return Vec::new();
    }
    let mut moved = std::mem::take(blocks);
    let done = tokio::task::spawn_blocking(move || {
        let mut hints = Vec::new();
        for block in &mut moved {
            let ContentBlock::Image(image) = &*block else { continue };
            *block = match prepare_base64(&image.data, &limits) {
                Ok(prepared) => {
                    hints.extend(prepared.hints);
                    let mime_type = prepared.mime.to_owned();
                    ContentBlock::Image(Image { data: prepared.data, mime_type, extra: image.extra.clone() })
                }
                Err(problem) => ContentBlock::text(format!("[Image omitted: {problem}.]")),
            };
        }
        (moved, hints)
    });
    match done.await {
        Ok((done, hints)) => {
            *blocks = done;
            hints
        }
        Err(error) => std::panic::resume_unwind(error.into_panic()),
    }
}

#[cfg(test)]
mod tests {
    use std::io::Cursor;

    use base64::Engine as _;
    use base64::engine::general_purpose::STANDARD;
    use image::{DynamicImage, ImageFormat, RgbImage};

    use super::super::request::StreamOptions;
    use super::*;
    use crate::ai::messages::{Api, Extra, Message, Millis, UserContent, UserMessage};
    use crate::ai::models::Modality;
    use crate::ai::transport::Credential;

    fn picture(width: u32, height: u32, format: ImageFormat) -> Image {
        let mut bytes = Cursor::new(Vec::new());
        DynamicImage::ImageRgb8(RgbImage::new(width, height)).write_to(&mut bytes, format).unwrap();
        let mime_type = format.to_mime_type().to_owned();
        Image { data: STANDARD.encode(bytes.into_inner()), mime_type, extra: Extra::new() }
    }

    fn request(api: Api, images: Vec<Image>) -> Arc<Request> {
        let message = UserMessage::new("look", images, Millis(0));
        let input = vec![Modality::Text, Modality::Image];
        Arc::new(Request {
            model: Arc::new(Model { api, input, ..Model::default() }),
            credential: Credential::None,
            messages: vec![Arc::new(Message::User(message))],
            options: StreamOptions::default(),
        })
    }

    fn shown(request: &Request) -> Vec<String> {
        let shown = request.messages[0].input_blocks().iter().skip(1).map(|block| match block {
            ContentBlock::Image(image) => {
                let probe = probe(&image.data).unwrap();
                assert_eq!(probe.mime, image.mime_type);
                format!("{} {}x{}", probe.mime, probe.width, probe.height)
            }
            ContentBlock::ImageUrl(image) => image.url().to_owned(),
            other => other.as_text().unwrap().to_owned(),
        });
        shown.collect()
    }

    #[tokio::test]
    async fn each_service_gets_what_it_takes() {
        let check = async |api: Api, image: Image, expected: &str| {
            let before = request(api, vec![image]);
            let fitted = ImageFitter::default().fit(&before).await;
            assert_eq!(shown(&fitted), [expected]);
        };
        let mislabelled = Image { mime_type: "image/jpeg".to_owned(), ..picture(9, 9, ImageFormat::Png) };
        let broken = Image { data: "iVBO".to_owned(), ..picture(9, 9, ImageFormat::Png) };
        let omitted = "[Image omitted: could not be converted to a supported inline image format.]";
        check(Api::ANTHROPIC_MESSAGES, picture(9_000, 3, ImageFormat::Png), "image/png 8000x3").await;
        check(Api::ANTHROPIC_MESSAGES, picture(9, 9, ImageFormat::Gif), "image/gif 9x9").await;
        check(Api::GOOGLE_GENERATIVE_AI, picture(9, 9, ImageFormat::Gif), "image/png 9x9").await;
        check(Api::OPENAI_RESPONSES, picture(9_000, 3, ImageFormat::Png), "image/png 9000x3").await;
        check(Api::ANTHROPIC_MESSAGES, mislabelled, "image/png 9x9").await;
        check(Api::OPENAI_COMPLETIONS, broken, omitted).await;
    }

    #[tokio::test]
    async fn a_request_that_fits_is_not_copied_and_work_is_done_once() {
        let fitter = ImageFitter::default();
        let fine = request(Api::ANTHROPIC_MESSAGES, vec![picture(20, 20, ImageFormat::Jpeg)]);
        assert!(Arc::ptr_eq(&fitter.fit(&fine).await, &fine));
        assert!(fitter.memory.lock().unwrap().entries.is_empty());

        let large = request(Api::ANTHROPIC_MESSAGES, vec![picture(9_000, 3, ImageFormat::Png)]);
        let first = fitter.fit(&large).await;
        let second = fitter.fit(&large).await;
        assert_eq!(first.messages, second.messages);
        assert_eq!(fitter.memory.lock().unwrap().entries.len(), 1);
        assert_eq!(shown(&large), ["image/png 9000x3"], "the conversation itself stays");
    }

    #[tokio::test]
    async fn pictures_by_address_count_and_stay_as_they_are() {
        let fitted = async |api: Api, url: &str| {
            let model = serde_json::json!({"id": "m", "api": api, "input": ["text", "image"],
                "inputLimits": {"imagesPerRequest": 2}});
            let mut request = (*request(api, Vec::new())).clone();
            request.model = Arc::new(serde_json::from_value(model).unwrap());
            let at = || ContentBlock::image_at(url).unwrap();
            let image = ContentBlock::Image(picture(9, 9, ImageFormat::Png));
            let blocks = vec![ContentBlock::text("t"), at(), image, at()];
            let message = UserMessage {
                content: UserContent::Blocks(blocks),
                timestamp: Millis(0),
                extra: Extra::new(),
            };
            request.messages = vec![Arc::new(Message::User(message))];
            let fitted = ImageFitter::default().fit(&Arc::new(request)).await;
            shown(&fitted)
        };
        let png = "image/png 9x9";
        let url = "https://x/y.png";
        let omitted = "[image: https://x/y.png]";
        assert_eq!(fitted(Api::ANTHROPIC_MESSAGES, url).await, [omitted, png, url]);
        // An image that is not fetched does not count.
        assert_eq!(fitted(Api::ANTHROPIC_VERTEX, url).await, [url, png, url]);
    }

    #[tokio::test]
    async fn a_message_holds_only_so_many_pictures() {
        let pictures = |n: u32| (1..=n).map(|side| picture(side, 1, ImageFormat::Png)).collect();
        let fitted = ImageFitter::default()
            .fit(&request(Api::new("bedrock-converse-stream".to_owned()), pictures(22)))
            .await;
        let shown = shown(&fitted);
        assert!(shown[1].starts_with("[Image omitted: the provider limits images per message"), "{shown:?}");
        assert_eq!((shown[2].as_str(), shown.len()), ("image/png 3x1", 22));
    }

    #[tokio::test]
    async fn a_model_says_what_is_stored_for_it() {
        let model = serde_json::json!({"id": "m", "inputLimits": {"images": {"resize":
            {"maxWidth": 10, "maxHeight": 20, "maxBytes": 100_000, "jpegQuality": 75}}}});
        let model: Model = serde_json::from_value(model).unwrap();
        let mut blocks = vec![ContentBlock::text("t"), ContentBlock::Image(picture(40, 8, ImageFormat::Png))];
        let said = fit_for_storing(&mut blocks, &model, true).await;
        let mut stored = (*request(Api::ANTHROPIC_MESSAGES, Vec::new())).clone();
        let content = UserContent::Blocks(blocks);
        let message = UserMessage { content, timestamp: Millis(0), extra: Extra::new() };
        stored.messages = vec![Arc::new(Message::User(message))];
        assert_eq!((shown(&stored), said.len()), (vec!["image/png 10x2".to_owned()], 1));
        assert_eq!(for_storing(&model, true).jpeg_quality, 75);
    }

    #[test]
    fn the_oldest_pictures_give_way_in_steps() {
        let rules = |max_images, max_request_bytes| ImageRules {
            max_images,
            max_request_bytes,
            ..ImageRules::of(&Model::default())
        };
        let check = |n_images: usize, expected: usize| {
            assert_eq!(n_omitted(&vec![10; n_images], &rules(8, 1_000)), expected, "{n_images} images");
        };
        check(8, 0);
        check(9, 2);
        check(10, 2);
        check(11, 4);
        assert_eq!(n_omitted(&[10; 100], &rules(1_000, 1_000)), 0);
        assert_eq!(n_omitted(&[10; 101], &rules(1_000, 1_000)), 25);
        assert_eq!(n_omitted(&[10; 125], &rules(1_000, 1_000)), 25);
        assert_eq!(n_omitted(&[10; 126], &rules(1_000, 1_000)), 50);
        assert_eq!(n_omitted(&[2_000], &rules(1_000, 1_000)), 1);
    }

    #[tokio::test]
    async fn what_is_stored_fits_and_says_what_became_of_it() {
        let check = async |image: Image, auto_resize: bool, expected: &str, hints: &[&str]| {
            let mut blocks = vec![ContentBlock::text("t"), ContentBlock::Image(image)];
            let said = fit_for_storing(&mut blocks, &Model::default(), auto_resize).await;
            let content = UserContent::Blocks(blocks);
            let message = UserMessage { content, timestamp: Millis(0), extra: Extra::new() };
            let mut stored = (*request(Api::ANTHROPIC_MESSAGES, Vec::new())).clone();
            stored.messages = vec![Arc::new(Message::User(message))];
            assert_eq!(
                (shown(&stored), said),
                (vec![expected.to_owned()], hints.iter().map(|hint| (*hint).to_owned()).collect())
            );
        };
        check(picture(30, 20, ImageFormat::WebP), true, "image/webp 30x20", &[]).await;
        let hint = "[Image: original 4000x8, displayed at 2000x4. Multiply coordinates by 2.00 to map to original image.]";
        check(picture(4_000, 8, ImageFormat::Png), true, "image/png 2000x4", &[hint]).await;
        check(picture(4_000, 8, ImageFormat::Png), false, "image/png 4000x8", &[]).await;
        let broken = Image { data: "?".to_owned(), ..picture(1, 1, ImageFormat::Png) };
        let omitted = "[Image omitted: could not be converted to a supported inline image format.]";
        check(broken, true, omitted, &[]).await;
    }
}

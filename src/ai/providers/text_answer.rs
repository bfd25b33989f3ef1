//! The simplest answer of a provider: one text.
//!
//! For providers outside this crate, which produce texts and want to know nothing of
//! blocks, their order and how an answer ends.

use std::pin::Pin;

use futures_util::stream::BoxStream;
use futures_util::{Stream, StreamExt as _, stream};
use tokio_util::sync::CancellationToken;

use crate::ai::messages::{
    AssistantBlock, AssistantMessage, BlockKind, EventStream, Millis, StopReason, StreamEvent, Text,
};
use crate::ai::requests::Request;

/// The events of an answer to `request` that is one text, from the `pieces` of that text.
///
/// An `Err` ends the answer as failed; its text is for the user, and what arrived before
/// it stays in the answer. When `cancel` fires, the answer ends as aborted and `pieces`
/// is dropped. Usage stays zero.
pub fn text_answer(
    request: &Request,
    pieces: impl Stream<Item = Result<String, String>> + Send + 'static,
    cancel: CancellationToken,
) -> EventStream {
    let model = &request.model;
    let started = Millis(request.options.started_ms);
    let mut message = AssistantMessage::pending(model.api.clone(), &model.provider, &model.id, started);
    message.thinking_level = Some(request.options.thinking);
    let state = Answering { message, text: String::new(), pieces: pieces.boxed(), cancel, is_over: false };
    let start = [StreamEvent::Start, StreamEvent::BlockStart { index: 0, kind: BlockKind::Text }];
    let rest = stream::unfold(state, |mut state| async {
        let events = state.next().await?;
        Some((stream::iter(events), state))
    });
    stream::iter(start).chain(rest.flatten()).boxed()
}

struct Answering {
    message: AssistantMessage,
    text: String,
    pieces: BoxStream<'static, Result<String, String>>,
    cancel: CancellationToken,
    is_over: bool,
}

impl Answering {
    /// The events of the next piece, or those at the end; `None` after them.
    async fn next(&mut self) -> Option<Vec<StreamEvent>> {
        if self.is_over {
            return None;
        }
        let cancel = self.cancel.clone();
        let piece = cancel.run_until_cancelled(Pin::new(&mut self.pieces).next()).await;
        Some(match piece {
            None => self.end(StopReason::Aborted, Some("Request was aborted".to_owned())),
            Some(None) => self.end(StopReason::Stop, None),
            Some(Some(Err(error))) => self.end(StopReason::Error, Some(error)),
            Some(Some(Ok(text))) => {
                self.text.push_str(&text);
                vec![StreamEvent::Delta { index: 0, text }]
            }
        })
    }

    fn end(&mut self, reason: StopReason, error: Option<String>) -> Vec<StreamEvent> {
        self.is_over = true;
        let block = AssistantBlock::Text(Text::new(std::mem::take(&mut self.text)));
        self.message.content = vec![block.clone()];
        (self.message.stop_reason, self.message.error_message) = (reason, error);
        let done = StreamEvent::Done(Box::new(self.message.clone()));
        vec![StreamEvent::BlockEnd { index: 0, block }, done]
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use super::*;
    use crate::ai::messages::StreamOrder;
    use crate::ai::models::Model;
    use crate::ai::requests::StreamOptions;
    use crate::ai::transport::Credential;

    /// The answer made of these pieces, whose events must be in order.
    async fn check(pieces: Vec<Result<String, String>>, cancel: CancellationToken) -> AssistantMessage {
        let request = Request {
            model: Arc::new(Model { id: "m".to_owned(), provider: "p".to_owned(), ..Model::default() }),
            credential: Credential::None,
            messages: Vec::new(),
            options: StreamOptions::default(),
        };
        let events: Vec<StreamEvent> = text_answer(&request, stream::iter(pieces), cancel).collect().await;
        let mut order = StreamOrder::default();
        for event in &events {
            order.accept(event).unwrap();
        }
        assert!(order.is_done());
        let Some(StreamEvent::Done(message)) = events.last() else { panic!("{events:?}") };
        AssistantMessage::clone(message)
    }

    fn piece(text: &str) -> Result<String, String> {
        Ok(text.to_owned())
    }

    #[tokio::test]
    async fn pieces_become_one_text() {
        let answer = check(vec![piece("a "), piece("b")], CancellationToken::new()).await;
        assert_eq!(answer.texts().collect::<Vec<_>>(), ["a b"]);
        assert_eq!((answer.stop_reason, answer.error_message), (StopReason::Stop, None));
        assert_eq!((answer.provider.as_str(), answer.model.as_str()), ("p", "m"));
    }

    #[tokio::test]
    async fn an_error_ends_the_answer_and_keeps_what_arrived() {
        let pieces = vec![piece("a"), Err("the line is dead".to_owned()), piece("b")];
        let answer = check(pieces, CancellationToken::new()).await;
        assert_eq!(answer.texts().collect::<Vec<_>>(), ["a"]);
        assert_eq!(answer.stop_reason, StopReason::Error);
        assert_eq!(answer.error_message.as_deref(), Some("the line is dead"));
    }

    #[tokio::test]
    async fn cancelling_ends_the_answer_as_aborted() {
        let cancel = CancellationToken::new();
        cancel.cancel();
        let answer = check(vec![piece("a")], cancel).await;
        assert_eq!(answer.stop_reason, StopReason::Aborted);
    }
}

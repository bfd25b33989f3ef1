//! Messages queued for a running agent: steering and follow-ups.
//!
//! Shared between the owner, who adds them, and the loop, which takes them
//! between its steps. Nothing else in a run is shared by two tasks; the lock is never
//! held over an `.await`.

use std::collections::VecDeque;
use std::ops::Range;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use tokio_util::sync::CancellationToken;

use crate::ai::Message;

/// When a steering message is delivered.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum SteeringDelivery {
    /// After the next tool call: tools not yet started are skipped, running
    /// ones finish.
    #[default]
    Tools,
    /// After all tool calls of the turn.
    Turn,
    /// Immediately: stream and tools are cancelled, the partial answer is kept.
    Now,
}

/// How many queued messages are delivered at a time.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum QueueMode {
    /// Each delivery takes the oldest message.
    #[default]
    OneAtATime,
    /// Each delivery takes all messages.
    All,
}

/// Selects one of the two queues.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum QueueKind {
    /// Delivered while the agent works.
    Steering,
    /// Delivered when the agent would otherwise stop.
    FollowUp,
}

/// A queued message, with the text the user typed.
#[derive(Debug, Clone)]
pub struct Queued {
    /// As the user typed it.
    pub text: String,
    /// Bytes of `text` that were pasted.
    pub pastes: Vec<Range<usize>>,
    /// What the model will read.
    pub message: Arc<Message>,
}

impl Queued {
    /// Whether it says the same, with the same images.
    fn is_same(&self, other: &Self) -> bool {
        let is_same_content = match (&*self.message, &*other.message) {
            (Message::User(own), Message::User(others)) => own.content == others.content,
            _ => true,
        };
        self.text == other.text && is_same_content
    }
}

/// Snapshot of a queued message; the queue may have changed since.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct QueueSlot {
    /// The queue it is in.
    pub kind: QueueKind,
    /// Its position, from 0.
    pub index: usize,
    /// Its text, so that a slot that has moved on is noticed.
    pub text: String,
}

/// Whether a message was added to the queue.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Pushed {
    /// The message is in the queue.
    Queued,
    /// The message before it is the same, was queued within [`DUPLICATE_WINDOW_MS`], and still waits; dropped.
    Duplicate,
}

/// The same text within this time counts as an accidental repetition.
pub const DUPLICATE_WINDOW_MS: u64 = 5_000;

/// Both queues of one session.
#[derive(Debug, Default)]
pub struct Queues(Mutex<Inner>);

#[derive(Debug, Default)]
struct Inner {
    steering: VecDeque<Queued>,
    follow_up: VecDeque<Queued>,
    /// Taken by the loop, or for the next run, and not a message of the conversation yet.
    underway: VecDeque<Queued>,
    delivery: SteeringDelivery,
    steering_mode: QueueMode,
    follow_up_mode: QueueMode,
    /// The last message queued, and when.
    last: Option<(Arc<Message>, u64)>,
    /// The token that cancels the turn in progress, if there is one.
    turn: Option<CancellationToken>,
    /// An interruption arrived between two turns, with nothing to cancel.
    urgent: bool,
    /// The next delivery empties the steering queue, whatever its mode.
    deliver_all: bool,
}

impl Queues {
    /// Changes how messages are delivered from now on.
    pub fn configure(&self, delivery: SteeringDelivery, steering: QueueMode, follow_up: QueueMode) {
        let mut inner = self.lock();
        inner.delivery = delivery;
        inner.steering_mode = steering;
        inner.follow_up_mode = follow_up;
    }

    /// When steering messages are delivered.
    pub fn delivery(&self) -> SteeringDelivery {
        self.lock().delivery
    }

    /// Queues a message at `now_ms`. Steering with the delivery `Now` interrupts
    /// the turn in progress.
    pub fn push(&self, kind: QueueKind, queued: Queued, now_ms: u64) -> Pushed {
        self.insert((kind, usize::MAX), queued, now_ms)
    }

    /// The same at a position of the queue, or at its end if it is shorter.
    pub fn insert(&self, (kind, index): (QueueKind, usize), queued: Queued, now_ms: u64) -> Pushed {
        let mut inner = self.lock();
        if inner.is_duplicate(&queued, now_ms) {
            return Pushed::Duplicate;
        }
        inner.last = Some((Arc::clone(&queued.message), now_ms));
        let queue = inner.queue(kind);
        queue.insert(index.min(queue.len()), queued);
        if kind == QueueKind::Steering && inner.delivery == SteeringDelivery::Now {
            inner.interrupt();
        }
        Pushed::Queued
    }

    /// Queues a steering message ahead of the others and interrupts the turn.
    pub fn push_now(&self, queued: Queued, now_ms: u64) -> Pushed {
        let mut inner = self.lock();
        if inner.is_duplicate(&queued, now_ms) {
            return Pushed::Duplicate;
        }
        inner.last = Some((Arc::clone(&queued.message), now_ms));
        inner.steering.push_front(queued);
        inner.interrupt();
        Pushed::Queued
    }

    /// Interrupts the turn in progress and delivers everything queued at once, steering
    /// before follow-ups; returns whether anything was queued.
    pub fn deliver_now(&self) -> bool {
        let mut inner = self.lock();
        let follow_up = std::mem::take(&mut inner.follow_up);
        inner.steering.extend(follow_up);
        let waits = !inner.steering.is_empty();
        if waits {
            inner.deliver_all = true;
            inner.interrupt();
        }
        waits
    }

    /// The texts of both queues, oldest first.
    pub fn texts(&self) -> (Vec<String>, Vec<String>) {
        let inner = self.lock();
        let texts = |queue: &VecDeque<Queued>| queue.iter().map(|queued| queued.text.clone()).collect();
        (texts(&inner.steering), texts(&inner.follow_up))
    }

    /// Applies `read` to the messages of both queues, oldest first. Messages that were taken
    /// and have not been [delivered](Self::on_delivered) count as steering.
    pub fn map<T>(&self, read: impl Fn(&Queued) -> T) -> (Vec<T>, Vec<T>) {
        let inner = self.lock();
        let steering = inner.underway.iter().chain(&inner.steering).map(&read).collect();
        (steering, inner.follow_up.iter().map(&read).collect())
    }

    /// Records that the owner has stored a message of the conversation, which may be from a
    /// queue.
    pub fn on_delivered(&self, message: &Message) {
        let mut inner = self.lock();
        if let Some(at) = inner.underway.iter().position(|queued| *queued.message == *message) {
            inner.underway.remove(at);
        }
    }

    /// Queues again, ahead of the others, what was taken by a loop that ended without
    /// delivering it.
    pub fn requeue_undelivered(&self) {
        let mut inner = self.lock();
        while let Some(queued) = inner.underway.pop_back() {
            inner.steering.push_front(queued);
        }
    }

    /// Empties both queues and returns their messages, oldest first.
    pub fn take_all(&self) -> (Vec<Queued>, Vec<Queued>) {
        let mut inner = self.lock();
        inner.last = None;
        inner.urgent = false;
        inner.deliver_all = false;
        (inner.steering.drain(..).collect(), inner.follow_up.drain(..).collect())
    }

    /// Removes and returns one message; `None` if it is no longer queued.
    pub fn take_one(&self, slot: &QueueSlot) -> Option<Queued> {
        let mut inner = self.lock();
        // The user edits it; sending it again is not an accidental repetition.
        inner.last = None;
        inner.take_one(slot)
    }

    /// Moves one message to position `index` of the queue `kind`; returns whether it was
    /// still queued. Interrupts nothing.
    pub fn move_one(&self, slot: &QueueSlot, kind: QueueKind, index: usize) -> bool {
        let mut inner = self.lock();
        let Some(queued) = inner.take_one(slot) else { return false };
        let queue = inner.queue(kind);
        queue.insert(index.min(queue.len()), queued);
        true
    }

    /// Whether nothing waits.
    pub fn is_empty(&self) -> bool {
        let inner = self.lock();
        inner.steering.is_empty() && inner.follow_up.is_empty()
    }

    /// The steering messages of one delivery.
    pub(super) fn take_steering(&self) -> Vec<Arc<Message>> {
        self.lock().take_steering()
    }

    /// The follow-up messages of one delivery.
    pub(super) fn take_follow_up(&self) -> Vec<Arc<Message>> {
        let mut inner = self.lock();
        let mode = inner.follow_up_mode;
        inner.take(QueueKind::FollowUp, mode)
    }

    /// Removes and returns the messages that the next run starts with: steering before
    /// follow-ups.
    pub fn take_next(&self) -> Vec<Arc<Message>> {
        let steering = self.take_steering();
        if steering.is_empty() { self.take_follow_up() } else { steering }
    }

    /// Whether to skip tools that have not started.
    pub(super) fn cuts_between_tools(&self) -> bool {
        let inner = self.lock();
        inner.delivery != SteeringDelivery::Turn && !inner.steering.is_empty()
    }

    /// Sets the token that an interruption cancels from now on. Returns the
    /// steering messages of an earlier interruption between two turns, which
    /// belong to the next request.
    pub(super) fn begin_turn(&self, turn: CancellationToken) -> Vec<Arc<Message>> {
        let mut inner = self.lock();
        inner.turn = Some(turn);
        if inner.urgent { inner.take_steering() } else { Vec::new() }
    }

    /// Removes the token of `Self::begin_turn`. Called by the loop, and by the owner
    /// of a loop that ended without calling it.
    pub fn end_turn(&self) {
        self.lock().turn = None;
    }

    fn lock(&self) -> MutexGuard<'_, Inner> {
        // The queues are valid after every statement, so a panic elsewhere does no harm.
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Inner {
    fn queue(&mut self, kind: QueueKind) -> &mut VecDeque<Queued> {
        match kind {
            QueueKind::Steering => &mut self.steering,
            QueueKind::FollowUp => &mut self.follow_up,
        }
    }

    fn take_one(&mut self, slot: &QueueSlot) -> Option<Queued> {
        let queue = self.queue(slot.kind);
        let is_it = |queued: &Queued| queued.text == slot.text;
        let there = queue.get(slot.index).is_some_and(is_it).then_some(slot.index);
        // An equal text elsewhere in the queue is the same message at a new position.
        let index = there.or_else(|| queue.iter().position(is_it))?;
        queue.remove(index)
    }

    /// Whether a key was hit twice. What has been delivered or taken back may be said again, and the images of
    /// equal texts may differ.
    fn is_duplicate(&self, queued: &Queued, now_ms: u64) -> bool {
        let Some((last, at)) = &self.last else { return false };
        let mut waiting = self.steering.iter().chain(&self.follow_up).chain(&self.underway);
        let last = waiting.find(|waiting| Arc::ptr_eq(&waiting.message, last));
        now_ms.saturating_sub(*at) < DUPLICATE_WINDOW_MS && last.is_some_and(|last| last.is_same(queued))
    }

    fn interrupt(&mut self) {
        match &self.turn {
            Some(turn) => turn.cancel(),
            None => self.urgent = true,
        }
    }

    fn take_steering(&mut self) -> Vec<Arc<Message>> {
        self.urgent = false;
        let mode = if std::mem::take(&mut self.deliver_all) { QueueMode::All } else { self.steering_mode };
        self.take(QueueKind::Steering, mode)
    }

    fn take(&mut self, kind: QueueKind, mode: QueueMode) -> Vec<Arc<Message>> {
        let queue = self.queue(kind);
        let n = match mode {
            QueueMode::OneAtATime => queue.len().min(1),
            QueueMode::All => queue.len(),
        };
        let taken: Vec<Queued> = queue.drain(..n).collect();
        let messages = taken.iter().map(|queued| Arc::clone(&queued.message)).collect();
        self.underway.extend(taken);
        messages
    }
}

#[cfg(test)]
mod tests {
    use crate::ai::{Extra, Image, Millis, UserMessage};

    use super::*;

    fn queued(text: &str) -> Queued {
        let message = UserMessage::new(text, Vec::new(), Millis(0));
        Queued { text: text.to_owned(), pastes: Vec::new(), message: Arc::new(Message::User(message)) }
    }

    #[test]
    fn each_mode_takes_what_it_says() {
        let queues = Queues::default();
        queues.configure(SteeringDelivery::Tools, QueueMode::OneAtATime, QueueMode::All);
        for kind in [QueueKind::Steering, QueueKind::FollowUp] {
            queues.push(kind, queued("a"), 0);
            queues.push(kind, queued("b"), 0);
        }
        assert_eq!(queues.take_steering().len(), 1);
        assert_eq!(queues.take_steering().len(), 1);
        assert_eq!(queues.take_follow_up().len(), 2);
        assert!(queues.is_empty());
    }

    #[test]
    fn what_was_taken_is_kept_until_it_is_delivered() {
        let queues = Queues::default();
        queues.configure(SteeringDelivery::Tools, QueueMode::All, QueueMode::All);
        for text in ["a", "b", "c"] {
            queues.push(QueueKind::Steering, queued(text), 0);
        }
        let kept = || queues.map(|queued| queued.text.clone()).0.join(" ");
        let taken = queues.take_steering();
        queues.push(QueueKind::Steering, queued("d"), 0);
        assert_eq!((kept().as_str(), queues.texts().0), ("a b c d", vec!["d".to_owned()]));
        queues.on_delivered(&taken[0]);
        queues.on_delivered(&taken[0]);
        assert_eq!(kept(), "b c d");
        queues.requeue_undelivered();
        assert_eq!((kept().as_str(), queues.texts().0.join(" ")), ("b c d", "b c d".to_owned()));
        assert_eq!(queues.take_steering().len(), 3);
    }

    #[test]
    fn the_same_text_within_five_seconds_is_dropped() {
        let queues = Queues::default();
        let push = |text: &str, at| queues.push(QueueKind::Steering, queued(text), at);
        assert_eq!(push("stop", 1_000), Pushed::Queued);
        assert_eq!(push("stop", 5_999), Pushed::Duplicate);
        assert_eq!(push("stop", 6_000), Pushed::Queued);
        assert_eq!(push("go", 6_001), Pushed::Queued);
        assert_eq!(push("go", 6_002), Pushed::Duplicate);
        // With another image, delivered, or taken back, it is another message.
        let image = Image { data: "YQ==".to_owned(), mime_type: "image/png".to_owned(), extra: Extra::new() };
        let with_image = UserMessage::new("go", vec![image], Millis(0));
        let with_image = Queued { message: Arc::new(Message::User(with_image)), ..queued("go") };
        assert_eq!(queues.push(QueueKind::FollowUp, with_image.clone(), 6_003), Pushed::Queued);
        assert_eq!(queues.push(QueueKind::FollowUp, with_image, 6_004), Pushed::Duplicate);
        assert_eq!(push("go", 6_005), Pushed::Queued);
        queues.take_all();
        assert_eq!(push("go", 6_006), Pushed::Queued);
    }

    #[test]
    fn a_message_is_found_where_it_has_gone() {
        let queues = Queues::default();
        for text in ["a", "b", "c"] {
            queues.push(QueueKind::Steering, queued(text), 0);
        }
        let slot = |kind, index, text: &str| QueueSlot { kind, index, text: text.to_owned() };
        let texts = || {
            let (steering, follow_up) = queues.texts();
            format!("{} | {}", steering.join(" "), follow_up.join(" "))
        };
        let check = |slot: QueueSlot, kind, index, moved, expected: &str| {
            assert_eq!(queues.move_one(&slot, kind, index), moved, "{slot:?}");
            assert_eq!(texts(), expected);
        };
        check(slot(QueueKind::Steering, 2, "c"), QueueKind::Steering, 0, true, "c a b | ");
        check(slot(QueueKind::Steering, 0, "b"), QueueKind::FollowUp, 9, true, "c a | b");
        check(slot(QueueKind::Steering, 0, "gone"), QueueKind::FollowUp, 0, false, "c a | b");
        queues.take_steering();
        assert!(queues.take_one(&slot(QueueKind::Steering, 1, "a")).is_some());
        assert!(queues.take_one(&slot(QueueKind::Steering, 1, "a")).is_none());
        assert_eq!(texts(), " | b");
    }

    #[test]
    fn an_urgent_message_goes_first_and_cancels_the_turn() {
        let queues = Queues::default();
        let turn = CancellationToken::new();
        queues.begin_turn(turn.clone());
        queues.push(QueueKind::Steering, queued("later"), 0);
        assert!(!turn.is_cancelled());
        queues.push_now(queued("wait"), 1);
        assert!(turn.is_cancelled());
        assert_eq!(queues.texts().0, ["wait", "later"]);
    }
}

//! Queued prompts and the draft of the next one: in memory and on disk.

use std::ops::Range;
use std::path::Path;
use std::sync::Arc;

use crate::agent::{Pushed, QueueKind, QueueMode, QueueSlot, Queued, Queues, SteeringDelivery};
use crate::ai::{ContentBlock, Message, UserContent, UserMessage};
use crate::config::{BatchSize, DeliveryTime, Settings};

use super::super::command::{PromptDraft, TakenQueue, WhenBusy};
use super::super::draft_file::DraftFile;
use super::super::event::{NoticeLevel, SessionEvent};
use super::super::handle::SessionError;
use super::super::outbox::Outbox;
use super::super::queue_file::{QueueFile, StoredQueues};
use super::super::refusal::Refusal;
use super::super::state::{Phase, QueueView, SessionState};
use super::super::urgent::is_urgent;

/// The queues of a session with their file, and the draft with its own: every prompt is
/// in at least one of the files.
pub(super) struct PromptQueue {
    queues: Arc<Queues>,
    queue_file: QueueFile,
    draft_file: DraftFile,
    /// Saved once the prompt that left the editor is stored; with its tickets.
    waiting_draft: Option<(PromptDraft, Vec<u64>)>,
    /// Prompts were passed to a run and are not in the session file yet.
    prompt_in_flight: bool,
    /// The draft cannot be saved, and the user was notified.
    draft_unsaved: bool,
    urgent_words: Arc<[String]>,
    /// Whether the current run was interrupted, so that queued messages return to the user.
    interrupted: bool,
    outbox: Outbox,
}

/// The outcome of a prompt for a session that is working.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Enqueued {
    Duplicate,
    Queued {
        /// It must not wait for the end of the turn or of a retry delay.
        interrupts: bool,
    },
}

impl PromptQueue {
    pub(super) fn new(
        settings: &Settings,
        queue_file: QueueFile,
        draft_file: DraftFile,
        outbox: Outbox,
    ) -> Self {
        let mut queue = Self {
            queues: Arc::default(),
            queue_file,
            draft_file,
            waiting_draft: None,
            prompt_in_flight: false,
            draft_unsaved: false,
            urgent_words: Arc::from([]),
            interrupted: false,
            outbox,
        };
        queue.configure(settings);
        queue
    }

    /// Applies the settings, also to messages already queued.
    pub(super) fn configure(&mut self, settings: &Settings) {
        let mode = |size| match size {
            BatchSize::OneAtATime => QueueMode::OneAtATime,
            BatchSize::All => QueueMode::All,
        };
        let delivery = match settings.steering_delivery {
            DeliveryTime::Tools => SteeringDelivery::Tools,
            DeliveryTime::Turn => SteeringDelivery::Turn,
            DeliveryTime::Now => SteeringDelivery::Now,
        };
        self.queues.configure(delivery, mode(settings.steering_mode), mode(settings.follow_up_mode));
        if *self.urgent_words != *settings.urgent_words {
            self.urgent_words = settings.urgent_words.clone().into();
        }
    }

    /// Moves to another session, with the queues and the draft.
    pub(super) fn move_to(&mut self, mut queue_file: QueueFile, draft_file: DraftFile) {
        queue_file.continue_tickets(&self.queue_file);
        let mut old = std::mem::replace(&mut self.queue_file, queue_file);
        // The draft stays stored in the meantime.
        let left = std::mem::replace(&mut self.draft_file, draft_file);
        self.draft_file.replace(left);
        self.save();
        // The queued messages must not be recovered in the old session, now that they are
        // beside the new one.
        drop(old.save(&StoredQueues::default()));
    }

    /// Continues beside the session at `session`, whose path has changed.
    pub(super) fn follow(&mut self, session: Option<&Path>) {
        self.queue_file.follow(session);
        self.draft_file.follow(session);
        self.save();
    }

    /// The queues, for the loop that empties them.
    pub(super) fn queues(&self) -> &Arc<Queues> {
        &self.queues
    }

    // The queues.

    /// Queues a prompt of the user while the session is working.
    pub(super) fn push(
        &mut self,
        (text, pastes): (String, Vec<Range<usize>>),
        message: UserMessage,
        when_busy: WhenBusy,
        now_ms: u64,
    ) -> Result<Enqueued, SessionError> {
        let urgent = is_urgent(&text, &self.urgent_words);
        let queued = Queued { text, pastes, message: Arc::new(Message::User(message)) };
        let steers = matches!(when_busy, WhenBusy::Steer | WhenBusy::At { kind: QueueKind::Steering, .. });
        let interrupts = matches!(when_busy, WhenBusy::Now)
            || (steers && (urgent || self.queues.delivery() == SteeringDelivery::Now));
        let pushed = match when_busy {
            WhenBusy::Refuse => {
                return Err(Refusal::Working.into());
            }
            WhenBusy::Now => self.queues.push_now(queued, now_ms),
            _ if steers && urgent => self.queues.push_now(queued, now_ms),
            WhenBusy::At { kind, index } => self.queues.insert((kind, index), queued, now_ms),
            WhenBusy::Steer => self.queues.push(QueueKind::Steering, queued, now_ms),
            WhenBusy::FollowUp => self.queues.push(QueueKind::FollowUp, queued, now_ms),
        };
        if pushed == Pushed::Duplicate {
            let text = "ignored a message: the one before it is the same and still waits";
            self.outbox.notice(NoticeLevel::Info, text);
            return Ok(Enqueued::Duplicate);
        }
        self.on_change();
        Ok(Enqueued::Queued { interrupts })
    }

    /// Delivers everything queued as an interruption; returns whether anything was queued.
    pub(super) fn deliver_now(&mut self) -> bool {
        let delivers = self.queues.deliver_now();
        if delivers {
            self.on_change();
        }
        delivers
    }

    pub(super) fn take_all(&mut self) -> TakenQueue {
        let (steering, follow_up) = self.queues.take_all();
        self.give_back(steering, follow_up)
    }

    /// Returns queued messages to the user, now and when the run settles.
    pub(super) fn interrupt(&mut self, phase: Phase) {
        self.interrupted = phase != Phase::Idle;
        self.return_all();
    }

    /// The session settles. Queued messages return to the user, because nothing would
    /// deliver them; after an abort without interrupt they stay for the next run.
    pub(super) fn on_settled(&mut self, aborted: bool) {
        if std::mem::take(&mut self.interrupted) || !aborted {
            self.return_all();
        }
    }

    fn return_all(&mut self) {
        if !self.is_empty() {
            let taken = Arc::new(self.take_all());
            self.outbox.send(SessionEvent::QueueReturned(taken));
        }
    }

    pub(super) fn take_one(&mut self, slot: &QueueSlot) -> TakenQueue {
        let taken: Vec<Queued> = self.queues.take_one(slot).into_iter().collect();
        match slot.kind {
            QueueKind::Steering => self.give_back(taken, Vec::new()),
            QueueKind::FollowUp => self.give_back(Vec::new(), taken),
        }
    }

    /// Removes a message for good: it is not among those that a crash gives back.
    pub(super) fn drop_one(&mut self, slot: &QueueSlot) {
        drop(self.queues.take_one(slot));
        self.on_change();
    }

    pub(super) fn move_one(&mut self, slot: &QueueSlot, kind: QueueKind, index: usize) {
        self.queues.move_one(slot, kind, index);
        self.on_change();
    }

    /// Messages and draft that an earlier process left undelivered.
    pub(super) fn take_left_over(&mut self) -> TakenQueue {
        let left_over = self.queue_file.take_left_over();
        TakenQueue { draft: self.draft_file.take_recovered(), ..left_over }
    }

    /// Removes and returns the messages that the next run begins with.
    pub(super) fn take_next(&mut self) -> Vec<Message> {
        self.queues.take_next().iter().map(|message| (**message).clone()).collect()
    }

    pub(super) fn is_empty(&self) -> bool {
        self.queues.is_empty()
    }

    /// Records the end of a loop, which may have failed before it did what it was to do.
    pub(super) fn on_run_end(&mut self) {
        self.queues.end_turn();
        self.queues.requeue_undelivered();
        self.on_prompt_landed();
    }

    /// Returns messages to the user. They stay in the queue file until a draft that
    /// contains them is stored.
    fn give_back(&mut self, steering: Vec<Queued>, follow_up: Vec<Queued>) -> TakenQueue {
        let drafts = |queued: Vec<Queued>| queued.iter().map(draft_of).collect();
        let taken = self.queue_file.give_back(drafts(steering), drafts(follow_up));
        self.on_change();
        taken
    }

    fn on_change(&mut self) {
        self.save();
        self.outbox.update(|state| self.show(state));
        self.outbox.send(SessionEvent::QueueChanged);
    }

    /// Updates the file: the loop has begun a message, which may come from a queue.
    pub(super) fn on_message_start(&mut self) {
        if *self.outbox.snapshot().queue != self.view() {
            self.outbox.update(|state| self.show(state));
            self.outbox.send(SessionEvent::QueueChanged);
        }
    }

    /// Updates the file of queued messages.
    fn save(&mut self) {
        let (steering, follow_up) = self.queues.map(draft_of);
        let queues = StoredQueues { steering: steering.into(), follow_up: follow_up.into() };
        if let Err(error) = self.queue_file.save(&queues) {
            let text = format!("cannot save queued messages, so a crash would lose them: {error}");
            self.outbox.notice(NoticeLevel::Warning, text);
        }
    }

    // The draft.

    /// Stores the contents of the editor, replacing the previous draft.
    pub(super) fn save_draft(&mut self, draft: PromptDraft, tickets: Vec<u64>) {
        if self.prompt_in_flight {
            // Until the prompt is in the session file, the stored draft is its only copy.
            self.waiting_draft = Some((draft, tickets));
            return;
        }
        let holds = self.queue_file.held_by(&tickets);
        match self.draft_file.save(&draft, &holds) {
            Ok(()) => {
                self.draft_unsaved = false;
                self.queue_file.forget(&tickets);
                self.save();
            }
            Err(error) if !std::mem::replace(&mut self.draft_unsaved, true) => {
                let text = format!("cannot save the draft, so a crash would lose it: {error}");
                self.outbox.notice(NoticeLevel::Warning, text);
            }
            Err(_) => {}
        }
    }

    /// Records that a run begins with a prompt that is not in the session file yet.
    pub(super) fn on_prompt_sent(&mut self) {
        self.prompt_in_flight = true;
    }

    /// Records that a prompt was delivered and is now in the session.
    pub(super) fn on_delivered(&mut self, prompt: &Message) {
        self.queues.on_delivered(prompt);
        self.save();
        self.on_prompt_landed();
    }

    /// Records that the prompt that left the editor is stored, or its run is over.
    pub(super) fn on_prompt_landed(&mut self) {
        self.prompt_in_flight = false;
        if let Some((draft, tickets)) = self.waiting_draft.take() {
            self.save_draft(draft, tickets);
        }
    }

    fn view(&self) -> QueueView {
        let (steering, follow_up) = self.queues.texts();
        QueueView { steering, follow_up }
    }

    /// Sets the snapshot's fields about the queues.
    pub(super) fn show(&self, state: &mut SessionState) {
        let view = self.view();
        if *state.queue != view {
            state.queue = Arc::new(view);
        }
        state.steering_delivery = self.queues.delivery();
        state.urgent_words = Arc::clone(&self.urgent_words);
    }
}

/// A queued message as the user wrote it.
fn draft_of(queued: &Queued) -> PromptDraft {
    let blocks = match &*queued.message {
        Message::User(UserMessage { content: UserContent::Blocks(blocks), .. }) => blocks.as_slice(),
        Message::User(_) | Message::System(_) | Message::Assistant(_) | Message::ToolResult(_) => &[],
    };
    let images = blocks.iter().filter_map(|block| match block {
        ContentBlock::Image(image) => Some(image.clone()),
        _ => None,
    });
    PromptDraft { text: queued.text.clone(), images: images.collect(), pastes: queued.pastes.clone() }
}

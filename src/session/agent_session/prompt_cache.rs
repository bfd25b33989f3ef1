//! The provider's cache of the conversation: notices about prompts that missed it, and the
//! requests that keep it.
//!
//! At most one such request is planned, with one timer, and only after an answer that makes
//! it worthwhile (`cache_warming` decides). What changes the conversation, a run, another
//! model and another session end the plan and cancel the request. `warming` sends it. A plan
//! holds the request that it repeats, with its images, for an hour at most.

use std::sync::Arc;
use std::time::Duration;

use futures_util::StreamExt as _;
use tokio::task::JoinHandle;
use tokio::time::Instant;
use tokio_util::sync::{CancellationToken, DropGuard};

use crate::ai::{
    AssistantMessage, ContentBlock, Credential, Message, Model, Provider, Request, StreamEvent, is_flat_rate,
    shortest_answer,
};
use crate::config::{CacheWarmingMode, LiveSettings};

use super::super::cache_warming::{self, CachedPrompt, NotWarmed, Stage, WarmingCosts, WarmingStatus};
use super::super::cache_watch::{self, CacheWatch};
use super::super::dropped_reasoning;
use super::super::event::NoticeLevel;
use super::super::outbox::Outbox;
use super::super::services::Services;
use super::super::state::SessionState;
use super::super::usage::billed_again_usd;

/// What the provider caches of the conversation.
pub(super) struct PromptCache {
    watch: CacheWatch,
    phase: Warming,
    stage: Stage,
    /// The request that is being answered, if its cache can be kept.
    asked: Option<Asked>,
    services: Arc<Services>,
    settings: LiveSettings,
    outbox: Outbox,
}

/// A request, and how to repeat it.
struct Asked {
    request: Arc<Request>,
    answer_cap: u64,
    /// Milliseconds since the Unix epoch.
    at_ms: u64,
}

/// What happens to keep the cache.
enum Warming {
    /// Nothing, without any timer.
    Resting {
        why: Option<NotWarmed>,
        costs: Option<WarmingCosts>,
    },
    Planned {
        plan: Box<WarmingPlan>,
        at_ms: u64,
        due: Instant,
    },
    Sending {
        plan: Box<WarmingPlan>,
        sent_ms: u64,
        task: JoinHandle<Option<AssistantMessage>>,
        _cancel: DropGuard,
    },
}

/// A cached prompt and the request that keeps it.
pub(super) struct WarmingPlan {
    pub(super) prompt: CachedPrompt,
    pub(super) request: Arc<Request>,
    answer_cap: u64,
}

/// The events that wake the cache's part of a session.
pub(super) enum CacheInput {
    /// It is time for the planned request.
    Due,
    /// The request has ended; `None` without an answer.
    Answered(Option<Box<AssistantMessage>>),
}

impl PromptCache {
    pub(super) fn new(services: Arc<Services>, settings: LiveSettings, outbox: Outbox) -> Self {
        Self {
            watch: CacheWatch::default(),
            phase: Warming::Resting { why: None, costs: None },
            stage: Stage::Idle { since_ms: 0 },
            asked: None,
            services,
            settings,
            outbox,
        }
    }

    /// Resets everything; for another session.
    pub(super) fn reset(&mut self) {
        *self = Self::new(Arc::clone(&self.services), self.settings.clone(), self.outbox.clone());
    }

    fn mode(&self) -> CacheWarmingMode {
        self.settings.get().values.cache_warming
    }

    /// The next input; never returns while nothing is planned.
    pub(super) async fn next_input(&mut self) -> CacheInput {
        match &mut self.phase {
            Warming::Resting { .. } => std::future::pending().await,
            Warming::Planned { due, .. } => {
                tokio::time::sleep_until(*due).await;
                CacheInput::Due
            }
            // A panic of the provider is a failure like others.
            Warming::Sending { task, .. } => CacheInput::Answered(task.await.ok().flatten().map(Box::new)),
        }
    }

    // What the session does.

    /// Prepares for a run after `messages`.
    pub(super) fn on_run_start(&mut self, messages: &[Arc<Message>]) {
        self.watch.catch_up(messages);
        self.stage = Stage::Running { since_ms: self.services.clock.now_ms() };
        self.rest(None);
    }

    /// Records a request of the run, which takes the place of any that keeps the cache.
    pub(super) fn on_request(&mut self, request: Arc<Request>) {
        self.asked = None;
        let allowed = if self.services.warms_caches { Ok(()) } else { Err(NotWarmed::FrontEnd) };
        let allowed = allowed.and_then(|()| {
            cache_warming::check_model(&request.model, self.mode(), request.options.long_cache)
        });
        match allowed.and_then(|()| shortest_answer(&request).ok_or(NotWarmed::LongAnswer)) {
            Ok(answer_cap) => {
                let at_ms = self.services.clock.now_ms();
                self.rest(None);
                self.asked = Some(Asked { request, answer_cap, at_ms });
            }
            Err(why) => self.rest(Some(why)),
        }
    }

    /// Records an answer of `model` to the request with `messages`.
    pub(super) fn on_answer(&mut self, answer: &AssistantMessage, messages: &[Arc<Message>], model: &Model) {
        let kept_ms = cache_watch::kept_ms(model, self.services.long_cache);
        let miss = self.watch.answered(answer, messages, kept_ms);
        let is_shown = self.settings.get().values.show_cache_miss_notices;
        if let Some(miss) = miss.filter(|_| is_shown) {
            let cost_usd = if is_flat_rate(&answer.provider, &answer.usage) {
                0.0
            } else {
                billed_again_usd(&answer.usage, miss.tokens, Some(&model.cost))
            };
            if let Some(text) = miss.describe(cost_usd) {
                self.outbox.notice(NoticeLevel::Info, text);
            }
        }
        if let Some(text) = dropped_reasoning::notice(answer, messages).filter(|_| is_shown) {
            self.outbox.notice(NoticeLevel::Info, text);
        }
        let asked = self.asked.take().filter(|_| !answer.is_failed());
        let Some(Asked { request, answer_cap, at_ms }) = asked else { return };
        match CachedPrompt::of(&request.model, request.options.long_cache, &answer.usage, answer_cap, at_ms) {
            Ok(prompt) => self.plan(WarmingPlan { prompt, request, answer_cap }),
            Err(why) => self.rest(Some(why)),
        }
    }

    /// Records that the agent waits for the user.
    pub(super) fn on_idle(&mut self) {
        if matches!(self.stage, Stage::Running { .. }) {
            self.stage = Stage::Idle { since_ms: self.services.clock.now_ms() };
            self.asked = None;
            // Images are not held in memory between prompts.
            match &self.phase {
                Warming::Planned { plan, .. } if has_images(&plan.request) => self.stop(NotWarmed::Images),
                _ => self.plan_again(),
            }
        }
    }

    /// Records that an earlier part of the conversation has changed.
    pub(super) fn on_prefix_change(&mut self, what: &'static str) {
        self.watch.rewritten(what);
        self.stop(NotWarmed::Changed);
    }

    /// Records that the conversation begins with a summary now.
    pub(super) fn on_summary(&mut self) {
        self.watch.summarized();
        self.stop(NotWarmed::Changed);
    }

    /// Ends the plan, and cancels the request if it was sent.
    pub(super) fn stop(&mut self, why: NotWarmed) {
        self.asked = None;
        if !matches!(self.phase, Warming::Resting { .. }) {
            self.rest(Some(why));
        }
    }

    /// Decides anew after a change of the setting.
    pub(super) fn on_mode_change(&mut self) {
        match self.mode() {
            CacheWarmingMode::Off => self.stop(NotWarmed::Off),
            CacheWarmingMode::Streaming | CacheWarmingMode::Idle => self.plan_again(),
        }
    }

    // The request.

    /// Takes the planned request out.
    pub(super) fn take_plan(&mut self) -> Option<WarmingPlan> {
        let costs = self.costs();
        match std::mem::replace(&mut self.phase, Warming::Resting { why: None, costs }) {
            Warming::Planned { plan, .. } => Some(*plan),
            other => {
                self.phase = other;
                None
            }
        }
    }

    /// Sends the request of `plan`, which differs from the one before in the limit of its
    /// answer alone. The task ends with the answer, or soon after the phase.
    pub(super) fn send(&mut self, plan: WarmingPlan) {
        let sent_ms = self.services.clock.now_ms();
        let mut request = (*plan.request).clone();
        request.options.answer_cap = Some(plan.answer_cap);
        request.options.started_ms = sent_ms;
        // Keys change and expire.
        request.credential = Credential::None;
        let cancel = CancellationToken::new();
        let (provider, token) = (Arc::clone(&self.services.provider), cancel.clone());
        let task = tokio::spawn(async move { answer(&*provider, request, token).await });
        self.phase = Warming::Sending { plan: Box::new(plan), sent_ms, task, _cancel: cancel.drop_guard() };
        self.publish();
    }

    /// Records the end of the request: plans the next one, if it kept the cache. Returns the
    /// plan it belonged to.
    pub(super) fn on_warmed(&mut self, answer: Option<&AssistantMessage>) {
        let Warming::Sending { plan, sent_ms, .. } =
            std::mem::replace(&mut self.phase, Warming::Resting { why: None, costs: None })
        else {
            return;
        };
        match answer {
            Some(answer) if answer.is_failed() => self.rest_with(NotWarmed::Failed, &plan),
            None => self.rest_with(NotWarmed::Failed, &plan),
            Some(answer) if !plan.prompt.was_read(&answer.usage) => self.rest_with(NotWarmed::Missed, &plan),
            Some(_) => {
                self.watch.used(sent_ms);
                let mut plan = *plan;
                plan.prompt.used_ms = sent_ms;
                self.plan(plan);
            }
        }
    }

    /// Ends `plan`, which was taken out.
    pub(super) fn rest_with(&mut self, why: NotWarmed, plan: &WarmingPlan) {
        self.phase = Warming::Resting { why: Some(why), costs: Some(plan.prompt.costs) };
        self.publish();
    }

    fn plan_again(&mut self) {
        if let Some(plan) = self.take_plan() {
            self.plan(plan);
        }
    }

    /// Plans the next request, or nothing.
    fn plan(&mut self, plan: WarmingPlan) {
        let now_ms = self.services.clock.now_ms();
        match plan.prompt.next_ms(self.mode(), self.stage, now_ms) {
            Ok(at_ms) => {
                let due = Instant::now() + Duration::from_millis(at_ms.saturating_sub(now_ms));
                self.phase = Warming::Planned { plan: Box::new(plan), at_ms, due };
                self.publish();
            }
            Err(why) => self.rest_with(why, &plan),
        }
    }

    fn rest(&mut self, why: Option<NotWarmed>) {
        self.phase = Warming::Resting { why, costs: self.costs() };
        self.publish();
    }

    fn costs(&self) -> Option<WarmingCosts> {
        match &self.phase {
            Warming::Resting { costs, .. } => *costs,
            Warming::Planned { plan, .. } | Warming::Sending { plan, .. } => Some(plan.prompt.costs),
        }
    }

    fn publish(&self) {
        self.outbox.update(|state| self.show(state));
    }

    /// Sets the snapshot's field about the cache.
    pub(super) fn show(&self, state: &mut SessionState) {
        state.cache_warmth.costs = self.costs();
        state.cache_warmth.status = match &self.phase {
            Warming::Resting { why: None, .. } => WarmingStatus::Unplanned,
            Warming::Resting { why: Some(why), .. } => WarmingStatus::Stopped(why.clone()),
            Warming::Planned { at_ms, .. } => WarmingStatus::Planned { at_ms: *at_ms },
            Warming::Sending { .. } => WarmingStatus::Sending,
        };
    }
}

async fn answer(
    provider: &dyn Provider,
    request: Request,
    cancel: CancellationToken,
) -> Option<AssistantMessage> {
    let mut events = provider.stream(Arc::new(request), cancel);
    while let Some(event) = events.next().await {
        if let StreamEvent::Done(message) = event {
            return Some(*message);
        }
    }
    None
}

fn has_images(request: &Request) -> bool {
    let is_image = |block: &ContentBlock| matches!(block, ContentBlock::Image(_));
    request.messages.iter().any(|message| match &**message {
        Message::User(user) => user.content.blocks().iter().any(is_image),
        Message::ToolResult(result) => result.content.iter().any(is_image),
        Message::System(_) | Message::Assistant(_) => false,
    })
}

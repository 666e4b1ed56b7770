//! Compaction: replaces the conversation by a summary, on request or before the context is full.

use std::time::Instant;

use quipu_api::Request;
use quipu_conversation::{Node, for_api, normalise};
use quipu_message::hook::{HookEvent, PostCompact, PreCompact};
use quipu_message::system::{CompactBoundary, System, stream_only};
use quipu_message::user_assistant::User;
use quipu_message::values::{ActivityStatus, CompactResult, CompactTrigger};
use quipu_message::{Block, Entry, Envelope, Extra, Maybe, Message, Role, Spelling, Uuid, factory, synthetic};
use quipu_transcript::AppendError;

use crate::agent_context::AgentContext;
use crate::announce;
use crate::clock::{Clock, now};
use crate::model::ModelLimits;
use crate::options::Autocompact;
use crate::session::Session;
use crate::side_calls::last_text;
use crate::spans::ChatSpan;

/// The request for a summary.
const SUMMARY_PROMPT: &str = "\
The conversation is about to be replaced by your summary of it, so write down everything that is needed to go on. \
Answer with text only and call no tools. First think in <analysis> tags; then write, in <summary> tags:
1. What the user wants, in their own words where the wording matters, and every correction they made.
2. What was decided and why.
3. Files read, made or changed, with the parts that matter.
4. What failed and how it was solved.
5. What is done, what is under way, and the very next step.";

/// Why a compaction was not made.
pub(crate) enum CompactionError {
    /// The conversation has no answer yet that could be summarised.
    TooShort,
    /// The API call failed, or its answer was empty.
    Api(String),
    /// A hook denied it; the reason.
    HookDenied(String),
    /// The turn was interrupted.
    Interrupted,
    /// The transcript cannot be written.
    Append(AppendError),
}

/// Which entries stay in the context after the summary.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum KeepPolicy {
    /// The last answer and everything after it.
    LastAnswer,
    /// Only entries after the last answer, unless they are its tool results.
    OnlyUnanswered,
}

/// A recorded compaction.
pub(crate) struct Compaction {
    boundary: CompactBoundary,
    summary: User,
}

impl AgentContext<'_> {
    /// Compacts because the user asked for it. `instructions` say what the summary should keep.
    pub(crate) async fn compact_manually(&self, instructions: &str) -> Result<Compaction, CompactionError> {
        compact(self, CompactTrigger::Manual, instructions, KeepPolicy::LastAnswer).await
    }

    /// Compacts if the last API call has nearly filled the context. Returns false if that failed; the
    /// next call is then tried with the whole conversation.
    pub(crate) async fn compact_if_full(&self) -> Result<bool, AppendError> {
        let filled = self.session.activity.context_tokens();
        if filled < self.auto_compact_threshold() { Ok(true) } else { self.auto_compact(KeepPolicy::LastAnswer).await }
    }

    /// Compacts because the API rejected the conversation as too long. Returns false if it could not.
    pub(crate) async fn compact_on_overflow(&self) -> Result<bool, AppendError> {
        self.auto_compact(KeepPolicy::OnlyUnanswered).await
    }

    /// Compacts, unless the user has turned automatic compaction off.
    async fn auto_compact(&self, keep: KeepPolicy) -> Result<bool, AppendError> {
        let off = self.session.settings().strongest_value(|known| known.auto_compact_enabled) == Some(false);
        if off || self.session.var("DISABLE_AUTO_COMPACT").is_some() || !self.is_main() {
            return Ok(false);
        }
        match compact(self, CompactTrigger::Auto, "", keep).await {
            Ok(compaction) => {
                emit_boundary(self.session, compaction);
                // No prompt follows that would bring these facts back into the context.
                let mut facts = announce::due_attachments(self);
                facts.extend(announce::due_instructions(self));
                facts.extend(announce::date_attachment(self));
                self.record(facts).await?;
            }
            Err(CompactionError::Append(error)) => return Err(error),
            Err(_) => return Ok(false),
        }
        Ok(true)
    }

    fn auto_compact_threshold(&self) -> u64 {
        let by_model = || ModelLimits::for_model(&self.model).auto_compact_threshold();
        let set = || self.session.var("CLAUDE_CODE_AUTO_COMPACT_WINDOW").and_then(|tokens| tokens.parse().ok());
        match self.session.options.autocompact {
            Some(Autocompact::Tokens(tokens)) => tokens.min(by_model()),
            Some(Autocompact::Auto) => by_model(),
            None => set().unwrap_or_else(by_model),
        }
    }
}

async fn compact(
    ctx: &AgentContext<'_>,
    trigger: CompactTrigger,
    instructions: &str,
    keep: KeepPolicy,
) -> Result<Compaction, CompactionError> {
    emit_status(ctx.session, Some(ActivityStatus::Compacting), None, None);
    let done = summarise_conversation(ctx, trigger, instructions, keep).await;
    match &done {
        Ok(_) => emit_status(ctx.session, None, Some(CompactResult::Success), None),
        Err(error) => emit_status(ctx.session, None, Some(CompactResult::Failed), Some(error.message())),
    }
    done
}

async fn summarise_conversation(
    ctx: &AgentContext<'_>,
    trigger: CompactTrigger,
    instructions: &str,
    keep: KeepPolicy,
) -> Result<Compaction, CompactionError> {
    let session = ctx.session;
    let input = PreCompact {
        trigger: trigger.clone(),
        custom_instructions: Maybe::Value(instructions.to_owned()),
        base: session.hook_base(),
        ..PreCompact::default()
    };
    let hook_outcome = session.run_hooks(input, Some(trigger.as_str()), None, &ctx.cancel).await;
    if let Some(why) = hook_outcome.deny_reason {
        return Err(CompactionError::HookDenied(why));
    }
    let (preserved, messages) = {
        let log = ctx.log();
        let (compaction, preserved) = log.context().split_at(first_kept_index(log.context(), keep));
        (uuids(preserved), for_api(&compaction.iter().collect::<Vec<_>>()))
    };
    // Without an answer there is nothing to summarise.
    if !messages.iter().any(|message| message.role == Role::Assistant) {
        return Err(CompactionError::TooShort);
    }
    let mut request = Request { messages, ..ctx.base_request() };
    let instructions =
        if instructions.is_empty() { String::new() } else { format!("\n\nThe user adds: {instructions}") };
    let ask = Block::new_text(format!("{SUMMARY_PROMPT}{instructions}"));
    match request.messages.last_mut().filter(|message| message.role == Role::User) {
        Some(last) => last.content = [std::mem::take(&mut last.content).into_blocks(), vec![ask]].concat().into(),
        None => request.messages.push(Message::new(Role::User, vec![ask])),
    }
    request.has_uncached_tail = true;
    let started_at = Instant::now();
    let span = ChatSpan::start(session, ctx.span, &request.model, request.max_tokens);
    let response = loop {
        let response = tokio::select! {
            response = session.client.call(&request).response() => response,
            () = ctx.cancel.cancelled() => return Err(CompactionError::Interrupted),
        };
        match response {
            Ok(response) => break response,
            Err(error) if error.is_prompt_too_long() && drop_older_half(&mut request.messages) => {}
            Err(error) => return Err(CompactionError::Api(error.to_string())),
        }
    };
    let usage = response.message.usage.get().cloned().unwrap_or_default();
    session.usage().add_api_call(&request.model, &usage, started_at.elapsed());
    span.complete(&response.message, response.request_id.as_ref());
    let text = last_text(&response.message);
    if text.trim().is_empty() {
        return Err(CompactionError::Api("the model wrote no summary".to_owned()));
    }
    let summary_text = synthetic::compact_summary_text(text_between_tags(&text, "<summary>", "</summary>"));
    let mut summary = factory::user(summary_text, &mut Clock);
    let pre_tokens = session.activity.context_tokens();
    let (boundary, recorded) = {
        let mut log = ctx.log();
        let anchor = summary.envelope.uuid.get().cloned().unwrap_or_default();
        let mut boundary = factory::compact_boundary(trigger.clone(), pre_tokens, &preserved, &anchor, &mut Clock);
        boundary.envelope.logical_parent_uuid = log.leaf_uuid().cloned().into();
        // Readers that sort by time must find it after the boundary.
        summary.envelope.timestamp = Maybe::Value(now());
        let recorded = log.compact(boundary.clone(), summary.clone(), &preserved).map_err(CompactionError::Append)?;
        (boundary, recorded)
    };
    ctx.wait_until_written(recorded).await.map_err(CompactionError::Append)?;
    session.activity.set_context_tokens(0);
    session.memory.clear_path_rules();
    if session.hooks.has_hooks_for(PostCompact::NAME) {
        let input = PostCompact {
            trigger: trigger.clone(),
            compact_summary: text,
            base: session.hook_base(),
            ..PostCompact::default()
        };
        session.run_hooks(input, Some(trigger.as_str()), None, &ctx.cancel).await;
    }
    Ok(Compaction { boundary, summary })
}

/// Removes the older half of the messages to summarise. Returns false if too few are left. The first
/// message stays: it is the first prompt, or an earlier summary.
fn drop_older_half(messages: &mut Vec<Message>) -> bool {
    let middle = messages.len() / 2 + 1;
    let Some(next) = (middle..messages.len()).find(|at| messages[*at].role == Role::User) else { return false };
    messages.drain(1..next);
    *messages = normalise(std::mem::take(messages));
    true
}

/// Index of the first entry that stays in the context. A tool call stays with its results.
fn first_kept_index(context: &[Node], keep: KeepPolicy) -> usize {
    let answered = |node: &Node| node.assistant().is_some_and(|line| !line.is_api_error());
    let Some(last) = context.iter().rposition(answered) else { return 0 };
    let is_result = |node: &Node| node.blocks().iter().any(|block| block.tool_result().is_some());
    if keep == KeepPolicy::OnlyUnanswered && !context[last + 1..].iter().any(is_result) {
        return last + 1;
    }
    let id = context[last].message_id();
    context.iter().position(|node| node.message_id().is_some() && node.message_id() == id).unwrap_or(last)
}

fn uuids(nodes: &[Node]) -> Vec<Uuid> {
    nodes.iter().filter_map(|node| node.uuid().cloned()).collect()
}

/// The text between two tags; all of it if they are missing.
fn text_between_tags<'a>(text: &'a str, open: &str, close: &str) -> &'a str {
    let start = text.find(open).map_or(0, |at| at + open.len());
    let end = text[start..].find(close).map_or(text.len(), |at| start + at);
    text[start..end].trim()
}

fn emit_status(
    session: &Session,
    status: Option<ActivityStatus>,
    result: Option<CompactResult>,
    error: Option<String>,
) {
    session.emit_system(System::Status(Box::new(stream_only::Status {
        status: status.map_or(Maybe::Null, Maybe::Value),
        compact_result: result.into(),
        compact_error: error.into(),
        envelope: session.output.envelope(),
        ..stream_only::Status::default()
    })));
}

/// Emits the boundary and the summary that were recorded.
pub(crate) fn emit_boundary(session: &Session, compaction: Compaction) {
    let Compaction { mut boundary, summary } = compaction;
    let stream = || Extra::with_spelling(Spelling::STREAM);
    // Only the summary of `/compact` is the answer to a prompt.
    let by_command =
        boundary.compact_metadata.get().is_some_and(|data| data.trigger.get() == Some(&CompactTrigger::Manual));
    if let Maybe::Value(data) = &mut boundary.compact_metadata {
        data.extra = stream();
        if let Maybe::Value(segment) = &mut data.preserved_segment {
            segment.extra = stream();
        }
        if let Maybe::Value(messages) = &mut data.preserved_messages {
            messages.extra = stream();
        }
    }
    let Envelope { uuid, logical_parent_uuid, .. } = boundary.envelope;
    session.emit_system(System::CompactBoundary(Box::new(CompactBoundary {
        compact_metadata: boundary.compact_metadata,
        envelope: Envelope { uuid, logical_parent_uuid, ..session.output.envelope() },
        extra: stream(),
        ..CompactBoundary::default()
    })));
    let Envelope { uuid, timestamp, .. } = summary.envelope;
    session.output.emit(Entry::User(Box::new(User {
        message: summary.message,
        is_synthetic: Maybe::Value(true),
        is_replay: by_command.then_some(false).into(),
        envelope: Envelope { uuid, timestamp, ..session.output.timestamped_envelope() },
        extra: stream(),
        ..User::default()
    })));
}

impl CompactionError {
    pub(crate) fn message(&self) -> String {
        match self {
            Self::TooShort => "too_few_groups".to_owned(),
            Self::Api(error) => error.clone(),
            Self::HookDenied(why) => format!("a hook refused: {why}"),
            Self::Interrupted => "interrupted".to_owned(),
            Self::Append(error) => error.to_string(),
        }
    }
}

#[cfg(test)]
mod tests;

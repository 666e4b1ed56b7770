//! One API call of a turn: events are emitted as they arrive, and tool calls start as soon as they
//! may.

use std::ops::Range;
use std::time::{Duration, Instant};

use quipu_api::{ApiCall, ApiError, ApiEvent, Retry};
use quipu_message::api::{self, StreamEvent};
use quipu_message::stream::{AbandonedBlocks, StreamEventEntry, Tombstone, TombstoneTarget};
use quipu_message::system::{self, System, stream_only};
use quipu_message::user_assistant::Assistant;
use quipu_message::values::{ActivityStatus, MessageLevel, RetrySource};
use quipu_message::{Block, Content, Entry, Envelope, Extra, Json, Maybe, Message, RequestId, Spelling, Usage, Uuid};
use quipu_transcript::AppendError;
use serde::Serialize;

use crate::agent_context::AgentContext;
use crate::clock::{new_id, now};
use crate::conversation_log::AnswerBlock;
use crate::model;
use crate::spans::ChatSpan;
use crate::tool_runs::ToolRuns;
use crate::turn_state::TurnState;
use crate::usage::{context_tokens, millis_number};

/// How an API call ended.
pub(crate) enum ApiCallOutcome<'a> {
    /// A complete answer, which is recorded; its tools may be running already.
    Answered { message: Box<Message>, tool_runs: ToolRuns<'a> },
    /// An error, after all retries.
    Failed(ApiError),
    /// The turn was interrupted. `closing_events` end the stream of the answer; they are emitted after
    /// the entry about the interrupt.
    Interrupted { tool_runs: ToolRuns<'a>, closing_events: Vec<Entry> },
}

/// The part of an answer that has arrived.
#[derive(Default)]
struct PartialAnswer {
    /// The message without content, as the response started.
    message_head: Message,
    request_id: Option<RequestId>,
    /// Id of the call in the request log of the transcript.
    request_ref: Option<String>,
    /// The complete blocks, which are recorded.
    blocks: Vec<AnswerBlock>,
    /// UUID of the last entry before the answer.
    previous_uuid: Option<Uuid>,
    /// Whether the first event of a streamed response was received.
    has_stream_started: bool,
    /// The last `content_block_stop`; it is emitted after the entry of its block.
    held_block_stop: Option<StreamEvent>,
    thinking_tokens: u64,
}

/// A failed API call, as transcripts store it.
#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct RecordedApiError<'a> {
    message: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    status: Option<u16>,
    formatted: &'a str,
}

/// The usage of a response so far, with every count that hosts read.
fn usage_so_far(message: Option<Message>) -> Usage {
    let known = message.and_then(|message| message.usage.into_option()).unwrap_or_default();
    let count = |tokens: Maybe<u64>| Maybe::Value(tokens.into_option().unwrap_or_default());
    Usage {
        input_tokens: count(known.input_tokens),
        output_tokens: count(known.output_tokens),
        cache_creation_input_tokens: count(known.cache_creation_input_tokens),
        cache_read_input_tokens: count(known.cache_read_input_tokens),
        ..known
    }
}

impl<'a> AgentContext<'a> {
    /// Sends the recorded conversation to the model. Records and emits the answer block by block and
    /// starts its tool calls. Fails only if the transcript cannot be written.
    pub(crate) async fn call_api(&'a self, turn: &mut TurnState) -> Result<ApiCallOutcome<'a>, AppendError> {
        if self.cancel.is_cancelled() {
            return Ok(ApiCallOutcome::Interrupted { tool_runs: ToolRuns::new(self), closing_events: Vec::new() });
        }
        let mut request = self.next_request();
        let mut request_ref = self.log().log_request(&mut request, self.query_source())?;
        if self.emits_partial_messages() {
            self.session.emit_system(System::Status(Box::new(stream_only::Status {
                status: Maybe::Value(ActivityStatus::Requesting),
                envelope: self.session.output.envelope(),
                ..stream_only::Status::default()
            })));
        }
        let started_at = Instant::now();
        let mut model = self.current_model();
        let mut span = ChatSpan::start(self.session, self.span, &request.model, request.max_tokens);
        let mut call = self.session.client.send(request);
        let mut partial = PartialAnswer::default();
        let mut tool_runs = ToolRuns::new(self);
        loop {
            let is_complete = call.is_complete();
            let event = tokio::select! {
                biased;
                // A complete response is kept, though the turn ends after it.
                () = self.cancel.cancelled(), if !is_complete => {
                    let message = call.partial();
                    drop(call);
                    span.interrupt();
                    let closing = self.handle_interrupt(partial, message, turn)?;
                    return Ok(ApiCallOutcome::Interrupted { tool_runs, closing_events: closing });
                }
                event = call.next() => event,
                () = tool_runs.advance() => continue,
            };
            match event {
                Some(Ok(ApiEvent::Started { message, request_id })) => {
                    span.note_event();
                    let before = self.log().leaf_uuid().cloned();
                    let request_ref = request_ref.clone();
                    partial = PartialAnswer {
                        message_head: message,
                        request_id,
                        request_ref,
                        previous_uuid: before,
                        ..PartialAnswer::default()
                    };
                }
                Some(Ok(ApiEvent::Event(event))) => self.handle_event(event, &call, &mut partial, turn),
                Some(Ok(ApiEvent::Block { block, .. })) => {
                    self.handle_block(block, &mut partial, &mut tool_runs, turn)?
                }
                Some(Ok(ApiEvent::Withdrawn)) => {
                    self.withdraw_answer(&partial)?;
                    tool_runs = ToolRuns::new(self);
                    partial = PartialAnswer::default();
                }
                Some(Ok(ApiEvent::Retry(retry))) => {
                    span.fail(&retry.error, retry.delay);
                    self.report_retry(&retry).await?;
                }
                Some(Ok(ApiEvent::ModelFallback { from, to })) => {
                    self.report_fallback(&from, &to).await?;
                    let mut request = self.next_request();
                    while request.model != to && request.switch_to_fallback().is_some() {}
                    request_ref = self.log().log_request(&mut request, self.query_source())?;
                    span.model.clone_from(&to);
                    model = to;
                }
                Some(Ok(ApiEvent::Completed(answer))) => {
                    let usage = answer.message.usage.get().cloned().unwrap_or_default();
                    self.session.usage().add_api_call(&model, &usage, started_at.elapsed());
                    span.complete(&answer.message, partial.request_id.as_ref());
                    if self.is_main() {
                        self.session.activity.set_context_tokens(context_tokens(&usage));
                    }
                    turn.add_response(&answer.message, &usage);
                    self.log().finish_answer(&partial.blocks, |line| {
                        let content = std::mem::take(&mut line.message.content);
                        line.message = Message { content, ..answer.message.clone() };
                    });
                    return Ok(ApiCallOutcome::Answered { message: Box::new(answer.message), tool_runs });
                }
                Some(Err(error)) => {
                    span.fail(&error, Duration::ZERO);
                    return Ok(ApiCallOutcome::Failed(error));
                }
                None => {
                    return Ok(ApiCallOutcome::Failed(ApiError::BadRequest {
                        reason: "the response ended early".to_owned(),
                    }));
                }
            }
        }
    }

    /// The source of the call, as the request log names it.
    fn query_source(&self) -> String {
        match self.subagent() {
            None => "sdk".to_owned(),
            Some(subagent) if subagent.is_builtin => format!("agent:builtin:{}", subagent.agent_type),
            Some(_) => "agent:custom".to_owned(),
        }
    }

    /// The model that the user chose: a full name, or `opusplan`, an alias for two models.
    fn requested_model(&self) -> String {
        let choice = self.session.model_choice.parameters();
        let plans = self.is_main() && choice.planning_model.is_some();
        if plans { model::opusplan(&choice.model) } else { self.model.clone() }
    }

    fn emits_partial_messages(&self) -> bool {
        self.is_main() && self.session.options.partial_messages
    }

    fn handle_event(&self, event: StreamEvent, call: &ApiCall, partial: &mut PartialAnswer, turn: &mut TurnState) {
        partial.has_stream_started |= matches!(event, StreamEvent::MessageStart(_));
        if let StreamEvent::BlockDelta(delta) = &event {
            turn.mark_first_token();
            if let api::Delta::Thinking(piece) = &delta.delta {
                self.emit_thinking_tokens(&piece.thinking, partial);
            }
        }
        if matches!(event, StreamEvent::BlockStart(_)) && !partial.blocks.is_empty() {
            self.log().answer_continues();
        }
        match event {
            StreamEvent::BlockStop(_) => partial.held_block_stop = Some(event),
            StreamEvent::Ping(_) => {}
            // Hosts read the usage of every one of these events.
            StreamEvent::MessageDelta(mut delta) if !delta.usage.is_value() => {
                delta.usage = Maybe::Value(usage_so_far(call.partial()));
                self.emit_event(StreamEvent::MessageDelta(delta), partial);
            }
            event => self.emit_event(event, partial),
        }
    }

    fn emit_event(&self, event: StreamEvent, partial: &PartialAnswer) {
        if self.emits_partial_messages() {
            self.session.output.emit(Entry::StreamEvent(Box::new(self.stream_event_entry(event, partial))));
        }
    }

    fn stream_event_entry(&self, event: StreamEvent, partial: &PartialAnswer) -> StreamEventEntry {
        StreamEventEntry {
            event,
            api_message_id: partial.message_head.id.clone(),
            envelope: Envelope { parent_tool_use_id: Maybe::Null, ..self.session.output.envelope() },
            ..StreamEventEntry::default()
        }
    }

    /// Emits an estimate of the thinking tokens so far; four characters are about a token.
    fn emit_thinking_tokens(&self, piece: &str, partial: &mut PartialAnswer) {
        let more = (piece.chars().count() as u64).div_ceil(4).max(1);
        partial.thinking_tokens += more;
        if self.is_main() {
            self.session.emit_system(System::ThinkingTokens(Box::new(stream_only::ThinkingTokens {
                estimated_tokens: Maybe::Value(partial.thinking_tokens),
                estimated_tokens_delta: Maybe::Value(i64::try_from(more).unwrap_or(i64::MAX)),
                envelope: self.session.output.envelope(),
                ..stream_only::ThinkingTokens::default()
            })));
        }
    }

    /// Emits and records a complete block, and starts its tool call if that may run.
    fn handle_block(
        &self,
        block: Block,
        partial: &mut PartialAnswer,
        tool_runs: &mut ToolRuns<'a>,
        turn: &mut TurnState,
    ) -> Result<(), AppendError>
    where
        Self: 'a,
    {
        turn.mark_first_token();
        let call = block.tool_use().cloned();
        let line = self.assistant_entry(block, false, partial);
        self.emit_block(&line);
        if let Some(event) = partial.held_block_stop.take() {
            self.emit_event(event, partial);
        }
        let recorded = self.log().record_answer_block(line)?;
        if let Some(call) = call {
            tool_runs.add(call, recorded.uuid.clone());
        }
        partial.blocks.push(recorded);
        Ok(())
    }

    /// The entry of a block, as recorded before the end of the answer is known.
    fn assistant_entry(&self, block: Block, aborted: bool, partial: &PartialAnswer) -> Assistant {
        Assistant {
            message: Message { content: Content::Blocks(vec![block]), ..partial.message_head.clone() },
            request_id: partial.request_id.clone().into(),
            request_ref: partial.request_ref.clone().into(),
            api_block_index: Maybe::Value(partial.blocks.len() as u64),
            requested_model: Maybe::Value(self.requested_model()),
            is_aborted_mid_stream: aborted.then_some(true).into(),
            envelope: Envelope { uuid: Maybe::Value(new_id()), timestamp: Maybe::Value(now()), ..Envelope::default() },
            ..Assistant::default()
        }
    }

    /// Withdraws the blocks of an answer that failed: emits a tombstone for each, and continues the
    /// conversation from before them.
    fn withdraw_answer(&self, partial: &PartialAnswer) -> Result<(), AppendError> {
        for block in &partial.blocks {
            let message = TombstoneTarget { uuid: Maybe::Value(block.uuid.clone()), ..TombstoneTarget::default() };
            let line = Tombstone { message, envelope: self.stream_envelope(None, None), ..Tombstone::default() };
            self.session.output.emit(Entry::Tombstone(Box::new(line)));
        }
        self.log().withdraw_answer(&partial.blocks, partial.previous_uuid.clone())
    }

    /// Keeps the text of an interrupted answer and drops unfinished tool calls. Returns the events that
    /// close the stream of the answer.
    fn handle_interrupt(
        &self,
        mut partial: PartialAnswer,
        message: Option<Message>,
        turn: &mut TurnState,
    ) -> Result<Vec<Entry>, AppendError> {
        let usage = usage_so_far(message.clone());
        let begun = message.map(|message| message.content.into_blocks()).unwrap_or_default();
        let open = partial.blocks.len()..begun.len();
        for block in begun.into_iter().skip(open.start) {
            if block.text().is_some_and(|text| !text.is_empty()) {
                let line = self.assistant_entry(block, true, &partial);
                self.emit_block(&line);
                partial.blocks.push(self.log().record_answer_block(line)?);
            }
        }
        turn.stop_reason = None;
        self.log().finish_answer(&partial.blocks, |_| ());
        Ok(self.closing_events(open, usage, &partial))
    }

    /// The events that close the stream of an interrupted answer whose blocks `open` have started.
    fn closing_events(&self, open: Range<usize>, usage: Usage, partial: &PartialAnswer) -> Vec<Entry> {
        if !self.emits_partial_messages() || !partial.has_stream_started {
            return Vec::new();
        }
        let stop = |index| StreamEvent::BlockStop(Box::new(api::BlockStop { index, ..api::BlockStop::default() }));
        let mut lines: Vec<StreamEventEntry> =
            open.map(|index| self.stream_event_entry(stop(index), partial)).collect();
        let delta = api::MessageDeltaFields {
            stop_reason: Maybe::Null,
            stop_sequence: Maybe::Null,
            stop_details: Maybe::Null,
            container: Maybe::Null,
            ..api::MessageDeltaFields::default()
        };
        let delta = api::MessageDelta { delta, usage: Maybe::Value(usage), ..api::MessageDelta::default() };
        lines.push(self.stream_event_entry(StreamEvent::MessageDelta(Box::new(delta)), partial));
        let abandoned = AbandonedBlocks {
            api_message_id: partial.message_head.id.clone(),
            from_block_index: Maybe::Value(partial.blocks.len() as u64),
            ..AbandonedBlocks::default()
        };
        lines.push(StreamEventEntry {
            abandoned_blocks: Maybe::Value(abandoned),
            ..self.stream_event_entry(StreamEvent::MessageStop(Box::default()), partial)
        });
        lines.into_iter().map(|line| Entry::StreamEvent(Box::new(line))).collect()
    }

    async fn report_retry(&self, retry: &Retry) -> Result<(), AppendError> {
        let Retry { attempt, max_retries: of, delay, error } = retry;
        if self.is_main() {
            self.session.emit_system(System::ApiRetry(Box::new(system::ApiRetry {
                attempt: Maybe::Value(u64::from(*attempt)),
                max_retries: Maybe::Value(u64::from(*of)),
                retry_delay_ms: Maybe::Value(millis_number(*delay)),
                error_status: error.status().map_or(Maybe::Null, |status| Maybe::Value(status.into())),
                error: Maybe::Value(error.retry_reason()),
                envelope: self.session.output.envelope(),
                ..system::ApiRetry::default()
            })));
        }
        let text = error.to_string();
        let message = match error {
            ApiError::Status { status, body, .. } => format!("{status} {body}"),
            _ => text.clone(),
        };
        let failure = RecordedApiError { message, status: error.status(), formatted: &text };
        let source = if error.is_connection_error() { RetrySource::Connection } else { RetrySource::Request };
        self.record_system(System::ApiError(Box::new(system::ApiError {
            level: MessageLevel::Error.into(),
            error: Maybe::Value(Json::from_serialize(&failure)),
            retry_in_ms: Maybe::Value(millis_number(*delay)),
            retry_attempt: Maybe::Value(u64::from(*attempt)),
            max_retries: Maybe::Value(u64::from(*of)),
            source: Maybe::Value(source),
            ..system::ApiError::default()
        })))
        .await
    }

    async fn report_fallback(&self, from: &str, to: &str) -> Result<(), AppendError> {
        let line = system::ModelFallback {
            content: Maybe::Value(format!("{from} is overloaded; {to} answers instead")),
            level: MessageLevel::Warning.into(),
            trigger: Maybe::Value("overloaded".to_owned()),
            original_model: Maybe::Value(from.to_owned()),
            fallback_model: Maybe::Value(to.to_owned()),
            is_meta: Maybe::Value(false),
            ..system::ModelFallback::default()
        };
        if self.is_main() {
            let (level, is_meta) = (Maybe::Absent, Maybe::Absent);
            let (envelope, extra) = (self.session.output.envelope(), Extra::with_spelling(Spelling::STREAM));
            let stream_entry = system::ModelFallback { level, is_meta, envelope, extra, ..line.clone() };
            self.session.emit_system(System::ModelFallback(Box::new(stream_entry)));
        }
        self.record_system(System::ModelFallback(Box::new(line))).await
    }
}

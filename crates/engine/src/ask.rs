//! One call of the model: what it says is passed on as it comes, its tools begin
//! as soon as they may.

use std::ops::Range;
use std::time::Instant;

use quipu_api::{ApiError, Heard, Retry};
use quipu_conversation::Accumulator;
use quipu_message::api::{self, StreamEvent};
use quipu_message::stream::{AbandonedBlocks, StreamEventLine, Tombstone, Withdrawn};
use quipu_message::system::{self, System, live};
use quipu_message::turn::Assistant;
use quipu_message::{Block, Content, Entry, Envelope, Extra, Json, Maybe, Message, RequestId, Spelling, Usage, Uuid};
use quipu_transcript::AppendError;
use serde::Serialize;

use crate::clock::{fresh, now};
use crate::ledger::{filled, millis};
use crate::log::AnswerBlock;
use crate::model;
use crate::talk::Talk;
use crate::turn::Count;
use crate::work::Works;

/// How a call ended.
pub(crate) enum Asked<'a> {
    /// With a whole answer, recorded; its tools are under way.
    Answer { message: Box<Message>, works: Works<'a> },
    /// With an error, after all retries.
    Failed(ApiError),
    /// The turn was interrupted in the middle. `closing` ends the stream of the answer; it
    /// is said after the line that tells of the interrupt.
    Broken { works: Works<'a>, closing: Vec<Entry> },
}

/// An answer as far as it has come.
#[derive(Default)]
struct PartialAnswer {
    /// The message as it began.
    head: Message,
    request_id: Option<RequestId>,
    /// Names the call in the session file's log of calls.
    request_ref: Option<String>,
    /// The blocks that are complete, recorded.
    blocks: Vec<AnswerBlock>,
    /// The last entry before it.
    before: Option<Uuid>,
    /// The block being written, for an answer that is interrupted.
    growing: Accumulator,
    /// The last `content_block_stop`, which follows the block's line.
    held: Option<StreamEvent>,
    thought: u64,
}

/// What a failed call was, as the file keeps it.
#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct Failure<'a> {
    message: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    status: Option<u16>,
    formatted: &'a str,
}

impl PartialAnswer {
    /// The usage known so far, with every count that hosts read.
    fn usage(&self) -> Usage {
        let known = self.growing.so_far().and_then(|message| message.usage.into_option()).unwrap_or_default();
        let count = |tokens: Maybe<u64>| Maybe::Value(tokens.into_option().unwrap_or_default());
        Usage {
            input_tokens: count(known.input_tokens),
            output_tokens: count(known.output_tokens),
            cache_creation_input_tokens: count(known.cache_creation_input_tokens),
            cache_read_input_tokens: count(known.cache_read_input_tokens),
            ..known
        }
    }
}

impl<'a> Talk<'a> {
    /// Asks the model to go on from what is recorded.
    pub(crate) async fn ask(&'a self, count: &mut Count) -> Result<Asked<'a>, AppendError> {
        if self.cancel.is_cancelled() {
            return Ok(Asked::Broken { works: Works::new(self), closing: Vec::new() });
        }
        let mut request = self.next_request();
        let mut request_ref = self.log().log_request(&mut request, self.query_source())?;
        if self.tells_pieces() {
            self.session.say(System::Status(Box::new(live::Status {
                status: Maybe::Value("requesting".to_owned()),
                envelope: self.session.output.envelope(),
                ..live::Status::default()
            })));
        }
        let began = Instant::now();
        let mut model = self.current_model();
        let mut asking = self.session.client.send(request);
        let mut partial = PartialAnswer::default();
        let mut works = Works::new(self);
        loop {
            let heard = tokio::select! {
                biased;
                // An answer that is whole is taken, though the turn ends after it.
                () = self.cancel.cancelled(), if !partial.growing.is_complete() => {
                    drop(asking);
                    let closing = self.broken_off(partial, count)?;
                    return Ok(Asked::Broken { works, closing });
                }
                heard = asking.next() => heard,
                () = works.advance() => continue,
            };
            match heard {
                Some(Ok(Heard::Began { message, request_id })) => {
                    let before = self.log().head().cloned();
                    let request_ref = request_ref.clone();
                    partial =
                        PartialAnswer { head: message, request_id, request_ref, before, ..PartialAnswer::default() };
                }
                Some(Ok(Heard::Event(event))) => self.event(event, &mut partial, count),
                Some(Ok(Heard::Block { block, .. })) => self.block(block, &mut partial, &mut works, count)?,
                Some(Ok(Heard::Withdrawn)) => {
                    self.withdraw(&partial)?;
                    works = Works::new(self);
                    partial = PartialAnswer::default();
                }
                Some(Ok(Heard::Retry(retry))) => self.retry(&retry).await?,
                Some(Ok(Heard::FellBack { from, to })) => {
                    self.fell_back(&from, &to).await?;
                    let mut request = self.next_request();
                    while request.model != to && request.fall_back().is_some() {}
                    request_ref = self.log().log_request(&mut request, self.query_source())?;
                    model = to;
                }
                Some(Ok(Heard::Done(answer))) => {
                    let usage = answer.message.usage.get().cloned().unwrap_or_default();
                    self.session.ledger().spend(&model, &usage, began.elapsed());
                    if self.is_main() {
                        self.session.state().filled = filled(&usage);
                    }
                    count.answered(&answer.message, &usage);
                    self.log().finish(&partial.blocks, |line| {
                        let content = std::mem::take(&mut line.message.content);
                        line.message = Message { content, ..answer.message.clone() };
                    })?;
                    return Ok(Asked::Answer { message: Box::new(answer.message), works });
                }
                Some(Err(error)) => return Ok(Asked::Failed(error)),
                None => return Ok(Asked::Failed(ApiError::BadRequest { reason: "nobody answered".to_owned() })),
            }
        }
    }

    /// Who asks, as the log of API calls names it.
    fn query_source(&self) -> String {
        match self.sub() {
            None => "sdk".to_owned(),
            Some(sub) if sub.builtin => format!("agent:builtin:{}", sub.kind),
            Some(_) => "agent:custom".to_owned(),
        }
    }

    /// The model that the answers of this conversation were asked for: a name of the API, or
    /// `opusplan`, which stands for two.
    fn requested_model(&self) -> String {
        let state = self.session.state();
        let plans = self.is_main() && state.planning_model.is_some();
        if plans { model::opusplan(&state.model) } else { self.model.clone() }
    }

    fn tells_pieces(&self) -> bool {
        self.is_main() && self.session.options.partial_messages
    }

    fn event(&self, event: StreamEvent, partial: &mut PartialAnswer, count: &mut Count) {
        // Only what is broken off needs it; what is whole comes as a block.
        let _ = partial.growing.push(&event);
        if let StreamEvent::BlockDelta(delta) = &event {
            count.first_word();
            if let api::Delta::Thinking(piece) = &delta.delta {
                self.say_thought(&piece.thinking, partial);
            }
        }
        match event {
            StreamEvent::BlockStop(_) => partial.held = Some(event),
            StreamEvent::Ping(_) => {}
            // Hosts read the usage of every one.
            StreamEvent::MessageDelta(mut delta) if !delta.usage.is_value() => {
                delta.usage = Maybe::Value(partial.usage());
                self.say_event(StreamEvent::MessageDelta(delta), partial);
            }
            event => self.say_event(event, partial),
        }
    }

    fn say_event(&self, event: StreamEvent, partial: &PartialAnswer) {
        if self.tells_pieces() {
            self.session.output.say(Entry::StreamEvent(Box::new(self.event_line(event, partial))));
        }
    }

    fn event_line(&self, event: StreamEvent, partial: &PartialAnswer) -> StreamEventLine {
        StreamEventLine {
            event,
            api_message_id: partial.head.id.clone(),
            envelope: Envelope { parent_tool_use_id: Maybe::Null, ..self.session.output.envelope() },
            ..StreamEventLine::default()
        }
    }

    /// Says how far the model has thought; four characters are about a token.
    fn say_thought(&self, piece: &str, partial: &mut PartialAnswer) {
        let more = (piece.chars().count() as u64).div_ceil(4).max(1);
        partial.thought += more;
        if self.is_main() {
            self.session.say(System::ThinkingTokens(Box::new(live::ThinkingTokens {
                estimated_tokens: Maybe::Value(partial.thought),
                estimated_tokens_delta: Maybe::Value(i64::try_from(more).unwrap_or(i64::MAX)),
                envelope: self.session.output.envelope(),
                ..live::ThinkingTokens::default()
            })));
        }
    }

    /// A block is complete: it is said and recorded, and its tool begins if it may.
    fn block(
        &self,
        block: Block,
        partial: &mut PartialAnswer,
        works: &mut Works<'a>,
        count: &mut Count,
    ) -> Result<(), AppendError>
    where
        Self: 'a,
    {
        count.first_word();
        let call = block.tool_use().cloned();
        let line = self.answer_line(block, false, partial);
        self.say_block(&line);
        if let Some(event) = partial.held.take() {
            self.say_event(event, partial);
        }
        let recorded = self.log().answer(line)?;
        if let Some(call) = call {
            works.add(call, recorded.uuid.clone());
        }
        partial.blocks.push(recorded);
        Ok(())
    }

    /// A block of an answer as the session file has it before the answer's end is known.
    fn answer_line(&self, block: Block, aborted: bool, partial: &PartialAnswer) -> Assistant {
        Assistant {
            message: Message { content: Content::Blocks(vec![block]), ..partial.head.clone() },
            request_id: partial.request_id.clone().into(),
            request_ref: partial.request_ref.clone().into(),
            api_block_index: Maybe::Value(partial.blocks.len() as u64),
            requested_model: Maybe::Value(self.requested_model()),
            is_aborted_mid_stream: aborted.then_some(true).into(),
            envelope: Envelope { uuid: Maybe::Value(fresh()), timestamp: Maybe::Value(now()), ..Envelope::default() },
            ..Assistant::default()
        }
    }

    /// Takes back what was said and recorded of an answer that broke.
    fn withdraw(&self, partial: &PartialAnswer) -> Result<(), AppendError> {
        for block in &partial.blocks {
            let message = Withdrawn { uuid: Maybe::Value(block.uuid.clone()), ..Withdrawn::default() };
            let line = Tombstone { message, envelope: self.envelope(None, None), ..Tombstone::default() };
            self.session.output.say(Entry::Tombstone(Box::new(line)));
        }
        self.log().withdraw(&partial.blocks, partial.before.clone())
    }

    /// The turn was interrupted: what was written so far is kept, unfinished calls are not.
    /// Returns what closes the stream of the answer.
    fn broken_off(&self, mut partial: PartialAnswer, count: &mut Count) -> Result<Vec<Entry>, AppendError> {
        let begun = partial.growing.so_far().map(|message| message.content.into_blocks()).unwrap_or_default();
        let open = partial.blocks.len()..begun.len();
        for block in begun.into_iter().skip(open.start) {
            if block.text().is_some_and(|text| !text.is_empty()) {
                let line = self.answer_line(block, true, &partial);
                self.say_block(&line);
                partial.blocks.push(self.log().answer(line)?);
            }
        }
        count.stop_reason = None;
        self.log().finish(&partial.blocks, |_| ())?;
        Ok(self.closing(open, &partial))
    }

    /// What closes the stream of an interrupted answer whose blocks `open` have begun.
    fn closing(&self, open: Range<usize>, partial: &PartialAnswer) -> Vec<Entry> {
        if !self.tells_pieces() || !partial.growing.has_begun() {
            return Vec::new();
        }
        let stop = |index| StreamEvent::BlockStop(Box::new(api::BlockStop { index, ..api::BlockStop::default() }));
        let mut lines: Vec<StreamEventLine> = open.map(|index| self.event_line(stop(index), partial)).collect();
        let delta = api::MessageChange {
            stop_reason: Maybe::Null,
            stop_sequence: Maybe::Null,
            stop_details: Maybe::Null,
            container: Maybe::Null,
            ..api::MessageChange::default()
        };
        let delta = api::MessageDelta { delta, usage: Maybe::Value(partial.usage()), ..api::MessageDelta::default() };
        lines.push(self.event_line(StreamEvent::MessageDelta(Box::new(delta)), partial));
        let abandoned = AbandonedBlocks {
            api_message_id: partial.head.id.clone(),
            from_block_index: Maybe::Value(partial.blocks.len() as u64),
            ..AbandonedBlocks::default()
        };
        lines.push(StreamEventLine {
            abandoned_blocks: Maybe::Value(abandoned),
            ..self.event_line(StreamEvent::MessageStop(Box::default()), partial)
        });
        lines.into_iter().map(|line| Entry::StreamEvent(Box::new(line))).collect()
    }

    async fn retry(&self, retry: &Retry) -> Result<(), AppendError> {
        let Retry { attempt, of, delay, error } = retry;
        if self.is_main() {
            self.session.say(System::ApiRetry(Box::new(system::ApiRetry {
                attempt: Maybe::Value(u64::from(*attempt)),
                max_retries: Maybe::Value(u64::from(*of)),
                retry_delay_ms: Maybe::Value(millis(*delay)),
                error_status: error.status().map_or(Maybe::Null, |status| Maybe::Value(status.into())),
                error: Maybe::Value(error.word().to_owned()),
                envelope: self.session.output.envelope(),
                ..system::ApiRetry::default()
            })));
        }
        let text = error.to_string();
        let message = match error {
            ApiError::Status { status, body, .. } => format!("{status} {body}"),
            _ => text.clone(),
        };
        let failure = Failure { message, status: error.status(), formatted: &text };
        let source = if error.is_connection() { "connection_retry" } else { "request_retry" };
        self.record_system(System::ApiError(Box::new(system::ApiError {
            level: Maybe::Value("error".to_owned()),
            error: Maybe::Value(Json::of(&failure)),
            retry_in_ms: Maybe::Value(millis(*delay)),
            retry_attempt: Maybe::Value(u64::from(*attempt)),
            max_retries: Maybe::Value(u64::from(*of)),
            source: Maybe::Value(source.to_owned()),
            ..system::ApiError::default()
        })))
        .await
    }

    async fn fell_back(&self, from: &str, to: &str) -> Result<(), AppendError> {
        let line = system::ModelFallback {
            content: Maybe::Value(format!("{from} is overloaded; {to} answers instead")),
            level: Maybe::Value("warning".to_owned()),
            trigger: Maybe::Value("overloaded".to_owned()),
            original_model: Maybe::Value(from.to_owned()),
            fallback_model: Maybe::Value(to.to_owned()),
            is_meta: Maybe::Value(false),
            ..system::ModelFallback::default()
        };
        if self.is_main() {
            let (level, is_meta) = (Maybe::Absent, Maybe::Absent);
            let (envelope, extra) = (self.session.output.envelope(), Extra::spelled(Spelling::STREAM));
            let said = system::ModelFallback { level, is_meta, envelope, extra, ..line.clone() };
            self.session.say(System::ModelFallback(Box::new(said)));
        }
        self.record_system(System::ModelFallback(Box::new(line))).await
    }

    /// Records a `system` line.
    pub(crate) async fn record_system(&self, mut line: System) -> Result<(), AppendError> {
        if let Some(envelope) = line.envelope_mut() {
            (envelope.uuid, envelope.timestamp) = (Maybe::Value(fresh()), Maybe::Value(now()));
        }
        self.record(vec![Entry::System(Box::new(line))]).await
    }
}

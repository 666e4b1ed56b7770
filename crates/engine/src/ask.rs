//! One call of the model: what it says is passed on as it comes, its tools begin
//! as soon as they may.

use std::time::Instant;

use quipu_api::{ApiError, Finer, Heard, Request, Retry, Thinking};
use quipu_message::api::{self, StreamEvent};
use quipu_message::stream::{StreamEventLine, Tombstone, Withdrawn};
use quipu_message::system::{self, System, live};
use quipu_message::{Block, Entry, Envelope, Extra, Json, Maybe, Message, RequestId, Spelling};
use quipu_transcript::AppendError;
use serde::Serialize;

use crate::clock::{fresh, now};
use crate::ledger::{filled, millis};
use crate::model::{Size, is_adaptive};
use crate::talk::{Line, Talk, Written};
use crate::turn::Count;
use crate::work::Works;

/// How a call ended.
pub(crate) enum Asked<'a> {
    /// With a whole answer, recorded; its tools are under way.
    Answer { message: Box<Message>, works: Works<'a> },
    /// With an error, after all retries.
    Failed(ApiError),
    /// The turn was broken off in the middle.
    Broken { works: Works<'a> },
}

/// An answer as far as it has come.
#[derive(Default)]
struct Coming {
    head: Message,
    request_id: Option<RequestId>,
    written: Vec<Written>,
    /// The block being written, for an answer that is broken off.
    growing: quipu_conversation::Accumulator,
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

impl<'a> Talk<'a> {
    /// Asks the model to go on from what is recorded.
    pub(crate) async fn ask(&'a self, count: &mut Count) -> Result<Asked<'a>, AppendError> {
        let request = self.next_request();
        if self.partial() {
            self.session.say(System::Status(Box::new(live::Status {
                status: Maybe::Value("requesting".to_owned()),
                envelope: self.session.output.envelope(),
                ..live::Status::default()
            })));
        }
        let began = Instant::now();
        let mut model = request.model.clone();
        let mut asking = self.session.client.send(request);
        let mut coming = Coming::default();
        let mut works = Works::new(self);
        loop {
            let heard = tokio::select! {
                biased;
                () = self.cancel.cancelled() => {
                    drop(asking);
                    self.broken_off(coming, count)?;
                    return Ok(Asked::Broken { works });
                }
                heard = asking.next() => heard,
                () = works.advance() => continue,
            };
            match heard {
                Some(Ok(Heard::Began { message, request_id })) => {
                    coming = Coming { head: message, request_id, ..Coming::default() };
                }
                Some(Ok(Heard::Event(event))) => self.event(event, &mut coming, count),
                Some(Ok(Heard::Block { block, .. })) => self.block(block, &mut coming, &mut works, count),
                Some(Ok(Heard::Withdrawn)) => {
                    self.withdraw(&coming);
                    works = Works::new(self);
                    coming = Coming::default();
                }
                Some(Ok(Heard::Retry(retry))) => self.retry(&retry)?,
                Some(Ok(Heard::FellBack { from, to })) => {
                    self.fell_back(&from, &to)?;
                    model = to;
                }
                Some(Ok(Heard::Done(answer))) => {
                    let usage = answer.message.usage.get().cloned().unwrap_or_default();
                    self.session.ledger().spend(&model, &usage, began.elapsed());
                    if self.is_main() {
                        self.session.state().filled = filled(&usage);
                    }
                    count.answered(&answer.message, &usage);
                    self.record_answer(&answer.message, &coming.written, false)?;
                    return Ok(Asked::Answer { message: Box::new(answer.message), works });
                }
                Some(Err(error)) => return Ok(Asked::Failed(error)),
                None => return Ok(Asked::Failed(ApiError::BadRequest { reason: "nobody answered".to_owned() })),
            }
        }
    }

    /// The request for what is recorded so far, with all its messages.
    pub(crate) fn request(&self) -> Request {
        Request { messages: self.log().messages(), ..self.frame() }
    }

    /// The same request, for sending: turns that are over are text already.
    fn next_request(&self) -> Request {
        let (settled, messages) = self.log().sending();
        Request { settled, messages, ..self.frame() }
    }

    /// The request without the conversation.
    fn frame(&self) -> Request {
        let (effort, max_thinking, thinking_display, session_id) = {
            let state = self.session.state();
            (state.effort(&self.model), state.max_thinking, state.thinking_display.clone(), state.id.clone())
        };
        let tool = |tool: &std::sync::Arc<dyn crate::tool::Tool>| {
            let definition = tool.definition();
            api::Tool {
                name: definition.name,
                description: Maybe::Value(definition.description),
                input_schema: Maybe::Value(Json::from(definition.input_schema)),
                ..api::Tool::default()
            }
        };
        let thinking = match max_thinking {
            Some(0) => Some(Thinking::Off),
            Some(tokens) => Some(Thinking::Budget(tokens.max(1024))),
            None if is_adaptive(&self.model) => Some(Thinking::Adaptive),
            None => None,
        };
        Request {
            model: self.model.clone(),
            fallback_model: self
                .session
                .options
                .fallback_model
                .as_deref()
                .map(|name| self.session.models.resolve(name)),
            system: self.system.clone(),
            tools: self.tools.iter().map(tool).collect(),
            max_tokens: Size::of(&self.model).output,
            thinking,
            effort: effort.filter(|_| is_adaptive(&self.model)),
            betas: self.session.options.betas.clone(),
            device_id: self.session.device_id(),
            session_id: Some(session_id),
            agent_id: self.sub().map(|sub| sub.id.clone()),
            finer: Finer { task_budget: self.session.options.task_budget, thinking_display },
            ..Request::default()
        }
    }

    fn partial(&self) -> bool {
        self.is_main() && self.session.options.partial_messages
    }

    fn event(&self, event: StreamEvent, coming: &mut Coming, count: &mut Count) {
        // Only what is broken off needs it; what is whole comes as a block.
        let _ = coming.growing.push(&event);
        if let StreamEvent::BlockDelta(delta) = &event {
            count.first_word();
            if let api::Delta::Thinking(piece) = &delta.delta {
                self.say_thought(&piece.thinking, coming);
            }
        }
        match event {
            StreamEvent::BlockStop(_) => coming.held = Some(event),
            StreamEvent::Ping(_) => {}
            event => self.say_event(event, coming),
        }
    }

    fn say_event(&self, event: StreamEvent, coming: &Coming) {
        if self.partial() {
            self.session.output.say(Entry::StreamEvent(Box::new(StreamEventLine {
                event,
                api_message_id: coming.head.id.clone(),
                envelope: Envelope { parent_tool_use_id: Maybe::Null, ..self.session.output.envelope() },
                ..StreamEventLine::default()
            })));
        }
    }

    /// Says how far the model has thought; four characters are about a token.
    fn say_thought(&self, piece: &str, coming: &mut Coming) {
        let more = (piece.chars().count() as u64).div_ceil(4).max(1);
        coming.thought += more;
        if self.is_main() {
            self.session.say(System::ThinkingTokens(Box::new(live::ThinkingTokens {
                estimated_tokens: Maybe::Value(coming.thought),
                estimated_tokens_delta: Maybe::Value(i64::try_from(more).unwrap_or(i64::MAX)),
                envelope: self.session.output.envelope(),
                ..live::ThinkingTokens::default()
            })));
        }
    }

    fn block(&self, block: Block, coming: &mut Coming, works: &mut Works<'a>, count: &mut Count)
    where
        Self: 'a,
    {
        count.first_word();
        let uuid = fresh();
        let written = Written { uuid, timestamp: now(), block, request_id: coming.request_id.clone() };
        self.say_block(&Line {
            uuid: &written.uuid,
            timestamp: written.timestamp.clone(),
            head: &coming.head,
            block: &written.block,
            request_id: coming.request_id.as_ref(),
            aborted: false,
        });
        if let Some(event) = coming.held.take() {
            self.say_event(event, coming);
        }
        if let Block::ToolUse(call) = &written.block {
            works.add((**call).clone(), written.uuid.clone());
        }
        coming.written.push(written);
    }

    /// Takes back what was said of an answer that broke.
    fn withdraw(&self, coming: &Coming) {
        for written in &coming.written {
            let message = Withdrawn { uuid: Maybe::Value(written.uuid.clone()), ..Withdrawn::default() };
            let line = Tombstone { message, envelope: self.envelope(None, None), ..Tombstone::default() };
            self.session.output.say(Entry::Tombstone(Box::new(line)));
        }
    }

    /// The turn was broken off: what was written so far is kept, unfinished calls are not.
    fn broken_off(&self, mut coming: Coming, count: &mut Count) -> Result<(), AppendError> {
        let open = coming.growing.so_far().map(|message| message.content.into_blocks()).unwrap_or_default();
        let rest = open.into_iter().skip(coming.written.len());
        let rest: Vec<Block> = rest.filter(|block| matches!(block.text(), Some(text) if !text.is_empty())).collect();
        let aborted = !rest.is_empty();
        let open = coming.written.len();
        for block in rest {
            let written = Written { uuid: fresh(), timestamp: now(), block, request_id: coming.request_id.clone() };
            self.say_block(&Line {
                uuid: &written.uuid,
                timestamp: written.timestamp.clone(),
                head: &coming.head,
                block: &written.block,
                request_id: coming.request_id.as_ref(),
                aborted: true,
            });
            coming.written.push(written);
        }
        count.stop_reason = None;
        if coming.growing.has_begun() {
            self.say_closed(open, &coming);
        }
        self.record_answer(&coming.head, &coming.written, aborted)
    }

    /// Closes the pieces of an answer that was broken off.
    fn say_closed(&self, open: usize, coming: &Coming) {
        let delta = api::MessageChange {
            stop_reason: Maybe::Null,
            stop_sequence: Maybe::Null,
            stop_details: Maybe::Null,
            container: Maybe::Null,
            ..api::MessageChange::default()
        };
        if open < coming.written.len() {
            let stop = api::BlockStop { index: open, ..api::BlockStop::default() };
            self.say_event(StreamEvent::BlockStop(Box::new(stop)), coming);
        }
        let delta = api::MessageDelta { delta, ..api::MessageDelta::default() };
        self.say_event(StreamEvent::MessageDelta(Box::new(delta)), coming);
        self.say_event(StreamEvent::MessageStop(Box::default()), coming);
    }

    fn retry(&self, retry: &Retry) -> Result<(), AppendError> {
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
    }

    fn fell_back(&self, from: &str, to: &str) -> Result<(), AppendError> {
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
        self.record_system(System::ModelFallback(Box::new(line)))
    }

    /// Records a `system` line.
    pub(crate) fn record_system(&self, mut line: System) -> Result<(), AppendError> {
        if let Some(envelope) = line.envelope_mut() {
            (envelope.uuid, envelope.timestamp) = (Maybe::Value(fresh()), Maybe::Value(now()));
        }
        self.log().record(vec![Entry::System(Box::new(line))])
    }
}

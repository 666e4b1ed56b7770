//! Request bodies of calls whose body was not recorded.

use quipu_message::request_view::{RequestBody, block_json, cache_control, message_json};
use quipu_message::values::CacheLifetime;
use serde_json::value::RawValue;

use crate::call::RequestParts;
use crate::prompt_store::{Breakpoint, PartKey, PromptStore, TextId};

/// The body of a request, from its parts. It has everything that the importers read but the
/// metadata.
pub(crate) fn request_body(request: &RequestParts, prompts: &PromptStore) -> Result<String, serde_json::Error> {
    let parts = |parts: &[PartKey]| -> Result<Vec<Box<RawValue>>, serde_json::Error> {
        parts.iter().map(|part| block_json(prompts.text(part.text), part.breakpoint.map(lifetime).as_ref())).collect()
    };
    let json = |id: Option<TextId>| id.map(|id| RawValue::from_string(prompts.text(id).to_owned())).transpose();
    let message = |key| {
        let message = prompts.message(key);
        message_json(&message.role, &parts(&message.blocks)?, &message.extra)
    };
    let mut system = json(request.billing_line)?.into_iter().collect::<Vec<_>>();
    system.extend(parts(&request.system)?);
    serde_json::to_string(&RequestBody {
        model: request.model.clone(),
        max_tokens: request.max_tokens,
        system,
        tools: parts(&request.tools)?,
        messages: request.messages.iter().map(|key| message(*key)).collect::<Result<_, _>>()?,
        tool_choice: json(request.tool_choice)?,
        thinking: json(request.thinking)?,
        output_config: json(request.output_config)?,
        context_management: json(request.context_management)?,
        cache_control: request.automatic_breakpoint.map(|breakpoint| cache_control(&lifetime(breakpoint))),
        speed: request.speed.clone(),
        stream: request.is_stream.then_some(true),
    })
}

fn lifetime(breakpoint: Breakpoint) -> CacheLifetime {
    match breakpoint {
        Breakpoint::FiveMinutes => CacheLifetime::FiveMinutes,
        Breakpoint::OneHour => CacheLifetime::OneHour,
    }
}

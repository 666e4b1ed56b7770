//! A call beside its predecessor: what differs, in the order in which causes are tested.

use std::collections::BTreeSet;

use quipu_message::Role;

use super::cause::Cause;
use super::history::HistoryChange;
use super::model_rules::removes_old_thinking;
use super::parameters::CacheParameters;
use super::positions::{MessageFacts, Place, Prompt, is_web_search};
use super::store::LOOKBACK;
use crate::call::{Call, RequestParts};
use crate::prompt_store::{PartKey, PromptStore, TextId};

/// A cause, and where the request first differs from its predecessor.
pub(super) struct Finding {
    pub(super) cause: Cause,
    pub(super) at: Option<String>,
}

/// The requests of a call and its predecessor.
#[derive(Clone, Copy)]
pub(super) struct RequestPair<'a> {
    pub(super) before: &'a RequestParts,
    pub(super) now: &'a RequestParts,
    pub(super) prompts: &'a PromptStore,
    /// Last breakpoint of the predecessor; what follows it was not cached.
    pub(super) limit: Place,
}

impl<'a> RequestPair<'a> {
    /// How the cached messages changed.
    pub(super) fn history(&self) -> HistoryChange {
        HistoryChange::find(self.before, self.now, self.limit, self.prompts)
    }

    /// The first difference in what precedes the messages, or in what changes how they are
    /// cached. Beta headers and images are left out.
    pub(super) fn before_messages(&self) -> Option<Finding> {
        self.model_or_tools().or_else(|| self.speed()).or_else(|| self.system()).or_else(|| self.parameters())
    }

    /// The first difference in the model or the tools.
    pub(super) fn model_or_tools(&self) -> Option<Finding> {
        if self.before.model != self.now.model {
            return found(Cause::ModelChanged, "model");
        }
        self.tools().map(|at| Finding { cause: Cause::ToolsChanged, at: Some(at) })
    }

    /// Whether fast mode was switched.
    pub(super) fn speed(&self) -> Option<Finding> {
        let [before, now] = [self.before, self.now].map(|request| CacheParameters::of(request, self.prompts).speed);
        if before == now { None } else { found(Cause::BetaChanged, "speed") }
    }

    /// The first difference in the system prompt or in what changes it.
    pub(super) fn system(&self) -> Option<Finding> {
        let change = |at: String| Some(Finding { cause: Cause::SystemChanged, at: Some(at) });
        let searches = |request: &RequestParts| -> Vec<TextId> {
            let tools = request.tools.iter().map(|tool| tool.text);
            tools.filter(|tool| is_web_search(self.prompts, *tool)).collect()
        };
        if searches(self.before) != searches(self.now) {
            let with_search = if searches(self.now).is_empty() { self.before } else { self.now };
            let index = with_search.tools.iter().position(|tool| is_web_search(self.prompts, tool.text));
            return change(Place::Tool(index.unwrap_or_default()).describe(with_search, self.prompts));
        }
        let (before, now) = (&self.before.system, &self.now.system);
        if let Some(index) = first_difference(before, now).filter(|index| Place::System(*index) <= self.limit) {
            return change(Place::System(index).describe(self.now, self.prompts));
        }
        let format = |request| CacheParameters::of(request, self.prompts).format;
        if format(self.before) != format(self.now) {
            return change("output_config.format".to_owned());
        }
        let citations = |request: &'a RequestParts| MessageFacts::of(request, self.prompts).has_citations;
        if citations(self.before) != citations(self.now) {
            let with_citations = if citations(self.now) { self.now } else { self.before };
            return change(self.describe_block(with_citations, |part| part.has_citations).unwrap_or_default());
        }
        None
    }

    /// The first difference in the parameters that change how messages are cached.
    pub(super) fn parameters(&self) -> Option<Finding> {
        let [before, now] = [self.before, self.now].map(|request| CacheParameters::of(request, self.prompts));
        if before.thinking != now.thinking {
            found(Cause::ThinkingChanged, "thinking")
        } else if before.effort != now.effort {
            found(Cause::ThinkingChanged, "output_config.effort")
        } else if before.tool_choice != now.tool_choice {
            found(Cause::ToolChoiceChanged, "tool_choice")
        } else {
            None
        }
    }

    /// Whether images were added or removed, unless another change of the history explains it.
    pub(super) fn images(&self, history: HistoryChange) -> Option<Finding> {
        let images = |request| MessageFacts::of(request, self.prompts).images;
        let (before, now) = (images(self.before), images(self.now));
        let has_images = |request, place| self.part_at(request, place).is_some_and(|part| part.images > 0);
        let is_cause = match history {
            HistoryChange::Same => before != now,
            HistoryChange::Edited(place) | HistoryChange::FirstMessage(place) => {
                has_images(self.before, place) != has_images(self.now, place) || before == 0 && now > 0
            }
            // Removed messages take their images with them.
            HistoryChange::Truncated(_) | HistoryChange::Rewound(_) => before == 0 && now > 0,
        };
        let with_images = if now >= before { self.now } else { self.before };
        let at = match history {
            HistoryChange::Edited(place) | HistoryChange::FirstMessage(place) if before > now => {
                Some(place.describe(self.now, self.prompts))
            }
            _ => self.describe_last_image(with_images),
        };
        is_cause.then_some(Finding { cause: Cause::ImagesChanged, at })
    }

    /// Where the thinking of the predecessor's turn begins, if this request is a new turn and
    /// the model removes that thinking from the context.
    pub(super) fn dropped_thinking(&self) -> Option<Finding> {
        let Place::Block { message: last, .. } = self.limit else { return None };
        let message = |request: &'a RequestParts, index: usize| self.prompts.message(request.messages[index]);
        let is_prompt = |request: &'a RequestParts, index: usize| {
            let message = message(request, index);
            let mut kinds = message.blocks.iter().map(|block| self.prompts.part(block.text).kind.as_str());
            message.role == Role::User && kinds.all(|kind| kind != "tool_result")
        };
        let is_new_turn = (last + 1..self.now.messages.len()).any(|index| is_prompt(self.now, index));
        if !is_new_turn || !removes_old_thinking(&self.now.model) {
            return None;
        }
        let turn = (0..=last).rev().find(|index| is_prompt(self.before, *index)).unwrap_or_default();
        let place = (turn..=last).find_map(|index| {
            let mut blocks = message(self.before, index).blocks.iter();
            let block = blocks.position(|block| self.prompts.part(block.text).kind.ends_with("thinking"))?;
            Some(Place::Block { message: index, block })
        });
        let at = place?.describe(self.before, self.prompts);
        Some(Finding { cause: Cause::ThinkingDropped, at: Some(at) })
    }

    fn tools(&self) -> Option<String> {
        let client_tools = |request: &RequestParts| -> Vec<PartKey> {
            let tools = request.tools.iter().copied();
            tools.filter(|tool| !is_web_search(self.prompts, tool.text)).collect()
        };
        let (before, now) = (client_tools(self.before), client_tools(self.now));
        let index = first_difference(&before, &now).filter(|index| Place::Tool(*index) <= self.limit)?;
        let name = |tool: &PartKey| self.prompts.part(tool.text).tool_name.clone().unwrap_or_default();
        let names = |tools: &[PartKey]| -> BTreeSet<String> { tools.iter().map(name).collect() };
        // A removed tool is named by its old place, any other change by the new one.
        let removed = before.get(index).map(name).filter(|name| !names(&now).contains(name));
        let added = now.get(index).map(name);
        let is_new = added.as_ref().is_some_and(|added| !names(&before).contains(added));
        let changed = if is_new { added } else { removed.or(added) };
        Some(format!("tools[{index}] {}", changed.unwrap_or_default()).trim_end().to_owned())
    }

    fn part_at(&self, request: &RequestParts, place: Place) -> Option<&'a crate::BlockPart> {
        let Place::Block { message, block } = place else { return None };
        let message = self.prompts.message(*request.messages.get(message)?);
        message.blocks.get(block).map(|block| self.prompts.part(block.text))
    }

    fn describe_block(&self, request: &RequestParts, is_found: impl Fn(&crate::BlockPart) -> bool) -> Option<String> {
        let place = request.messages.iter().enumerate().find_map(|(message, key)| {
            let mut blocks = self.prompts.message(*key).blocks.iter();
            let block = blocks.position(|block| is_found(self.prompts.part(block.text)))?;
            Some(Place::Block { message, block })
        });
        place.map(|place| place.describe(request, self.prompts))
    }

    fn describe_last_image(&self, request: &RequestParts) -> Option<String> {
        let place = request.messages.iter().enumerate().rev().find_map(|(message, key)| {
            let mut blocks = self.prompts.message(*key).blocks.iter();
            let block = blocks.rposition(|block| self.prompts.part(block.text).images > 0)?;
            Some(Place::Block { message, block })
        });
        place.map(|place| place.describe(request, self.prompts))
    }
}

/// Which beta header changed; `None` if none did.
pub(super) fn beta_change(before: &Call, now: &Call) -> Option<String> {
    let betas = |call: &Call| call.betas.iter().cloned().collect::<BTreeSet<String>>();
    let (before, now) = (betas(before), betas(now));
    let changed = before.symmetric_difference(&now).next()?;
    Some(format!("anthropic-beta {changed}"))
}

/// Whether no breakpoint of the prompt looks back as far as the position with this index.
pub(super) fn is_out_of_reach(prompt: &Prompt, position: usize) -> bool {
    let reach = prompt.positions.iter().skip(position).take(LOOKBACK);
    reach.filter(|position| position.breakpoint.is_some()).count() == 0
}

/// Whether both calls have a known credential and they differ.
pub(super) fn is_other_account(before: &Call, now: &Call) -> bool {
    let accounts = before.identity.account.zip(now.identity.account);
    accounts.is_some_and(|(before, now)| before != now)
}

fn found(cause: Cause, at: &str) -> Option<Finding> {
    Some(Finding { cause, at: Some(at.to_owned()) })
}

/// Index of the first part that differs, or at which one of the lists ends.
fn first_difference(before: &[PartKey], now: &[PartKey]) -> Option<usize> {
    let same = before.iter().zip(now).take_while(|(before, now)| before.text == now.text).count();
    (same < before.len() || same < now.len()).then_some(same)
}

//! Attachments for instructions, the budget and plan mode.

use quipu_message::attachment::{self, Attachment};
use quipu_message::{Entry, Json, Maybe};

use super::announced_instructions;
use crate::agent_context::AgentContext;
use crate::attachments::rendered_attachment;
use crate::instructions::{self, InstructionFile};
use crate::session::Session;
use crate::usage::float_number;

/// The instruction files; `None` if the context holds them as they are. They are read with the first
/// prompt of the process and after a compaction has removed them from the context.
pub(crate) fn due_instructions(ctx: &AgentContext<'_>) -> Option<Entry> {
    let session = ctx.session;
    let is_first = session.memory.take_instructions_unsent();
    let known = announced_instructions(&ctx.log());
    if !is_first && known.is_some() {
        return None;
    }
    let (files, left_out) = session.find_instructions();
    if is_first {
        left_out.into_iter().for_each(|file| session.warn(format!("instructions left out: {file}")));
    }
    let is_told = known.is_some_and(|known| known.to_value() == Json::from_serialize(&files).to_value());
    if is_told { None } else { instructions_attachment(&files) }
}

/// The instruction files as one attachment; `None` if there are no files.
pub(crate) fn instructions_attachment(files: &[InstructionFile]) -> Option<Entry> {
    if files.is_empty() {
        return None;
    }
    let attached = attachment::Instructions {
        files: Maybe::Value(Json::from_serialize(files)),
        ..attachment::Instructions::default()
    };
    Some(rendered_attachment(
        Attachment::Instructions(Box::new(attached)),
        vec![instructions::render_instructions(files)],
    ))
}

/// How much of the budget is left; `None` if there is no limit.
pub(crate) fn budget_attachment(session: &Session) -> Option<Entry> {
    let total = session.options.max_budget_usd?;
    let used = session.usage().cost_usd();
    let left = (total - used).max(0.0);
    let note = attachment::BudgetUsd {
        used: Maybe::Value(float_number(used)),
        total: Maybe::Value(float_number(total)),
        remaining: Maybe::Value(float_number(left)),
        ..attachment::BudgetUsd::default()
    };
    let text = format!("This session may cost ${total:.4}; ${left:.4} are left.");
    Some(rendered_attachment(Attachment::BudgetUsd(Box::new(note)), vec![text]))
}

/// A note that plan mode is on, or that it has ended; `None` if it is off and was off.
pub(crate) fn plan_mode_attachment(session: &Session) -> Option<Entry> {
    let (was, planning) = session.permissions.take_plan_mode_change();
    let (text, attached) = match (was, planning) {
        (_, true) => {
            let note = attachment::PlanMode {
                reminder_type: Maybe::Value("full".to_owned()),
                ..attachment::PlanMode::default()
            };
            let text = "Plan mode is on: look and think, but change nothing. No files are written and no command that \
                        changes anything is run, whatever else was said. End with a plan the user can agree to.";
            (text, Attachment::PlanMode(Box::new(note)))
        }
        (true, false) => {
            let note = attachment::PlanModeExit::default();
            ("Plan mode is over: changes may be made again.", Attachment::PlanModeExit(Box::new(note)))
        }
        (false, false) => return None,
    };
    Some(rendered_attachment(attached, vec![text.to_owned()]))
}

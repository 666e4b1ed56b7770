//! The options that `show` and `export` share to select parts of a conversation.

use std::collections::HashSet;
use std::ops::RangeInclusive;

use anyhow::Result;
use clap::Args as ClapArgs;
use quipu_conversation::{Conversation, ItemKind, ScreenItem, SkeletonView, UiOptions};

use crate::error::Failure;
use crate::format;

#[derive(Debug, Clone, Default, ClapArgs)]
pub(crate) struct PartArgs {
    /// Only the Nth turn, counted from 1
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u64).range(1..))]
    pub(crate) turn: Option<u64>,
    /// Only the last N items
    #[arg(long, value_name = "N")]
    pub(crate) tail: Option<usize>,
    /// Leave out the model's thinking
    #[arg(long)]
    pub(crate) no_thinking: bool,
    /// Leave out tool calls and hooks
    #[arg(long)]
    pub(crate) no_tools: bool,
    /// Only what the user typed
    #[arg(long)]
    pub(crate) only_prompts: bool,
}

impl PartArgs {
    /// Whether only some turns or items are selected.
    pub(crate) fn is_partial(&self) -> bool {
        self.turn.is_some() || self.tail.is_some() || self.only_prompts
    }

    /// Whether some kinds of items are left out.
    pub(crate) fn leaves_out(&self) -> bool {
        self.only_prompts || self.no_thinking || self.no_tools
    }

    /// Removes items that the options do not select. Fails if there is no such turn.
    pub(crate) fn select(&self, items: &mut Vec<ScreenItem>, conversation: &Conversation) -> Result<()> {
        if let Some(n) = self.turn {
            let turns = conversation.turns();
            let lines: HashSet<u64> = nth_turn(&turns, n)?.nodes.iter().map(|node| node.line).collect();
            items.retain(|item| lines.contains(&item.line));
        }
        self.retain_wanted(items);
        self.keep_tail(items);
        Ok(())
    }

    /// The items of `--turn` or `--tail`, of which only those entries are read. Fails if there is no
    /// such turn.
    pub(crate) fn select_window(&self, session: SkeletonView<'_>, options: UiOptions) -> Result<Vec<ScreenItem>> {
        let Some(n) = self.turn else {
            let count = self.tail.unwrap_or(usize::MAX);
            return Ok(session.tail(count, options, |items| self.retain_wanted(items)));
        };
        let turns = session.turns();
        let positions = nth_turn(&turns, n)?.positions.clone();
        let lines: HashSet<u64> = session.lines(positions.clone()).into_iter().collect();
        let mut items = session.items(positions, options);
        items.retain(|item| lines.contains(&item.line));
        self.retain_wanted(&mut items);
        self.keep_tail(&mut items);
        Ok(items)
    }

    /// Line numbers from the first to the last entry of the turn; all lines without `--turn`. Fails
    /// if there is no such turn.
    pub(crate) fn turn_lines(&self, session: SkeletonView<'_>) -> Result<RangeInclusive<u64>> {
        let Some(n) = self.turn else { return Ok(0..=u64::MAX) };
        let lines = session.lines(nth_turn(&session.turns(), n)?.positions.clone());
        Ok(lines.iter().min().copied().unwrap_or_default()..=lines.iter().max().copied().unwrap_or_default())
    }

    fn keep_tail(&self, items: &mut Vec<ScreenItem>) {
        if let Some(n) = self.tail {
            items.drain(..items.len().saturating_sub(n));
        }
    }

    fn retain_wanted(&self, items: &mut Vec<ScreenItem>) {
        items.retain(|item| match item.kind {
            ItemKind::User => true,
            _ if self.only_prompts => false,
            ItemKind::Thinking => !self.no_thinking,
            ItemKind::Tool | ItemKind::Hook => !self.no_tools,
            _ => true,
        });
        let subagents = items.iter_mut().filter_map(|item| item.tool.as_mut()?.subagent.as_mut());
        subagents.for_each(|subagent| self.retain_wanted(&mut subagent.items));
    }
}

fn nth_turn<T>(turns: &[T], n: u64) -> Result<&T> {
    let turn = usize::try_from(n - 1).ok().and_then(|at| turns.get(at));
    turn.ok_or_else(|| {
        let hint = format!("the session has {}", format::count(turns.len(), "turn"));
        Failure::error("turn.none", format!("no turn {n}"), hint)
    })
}

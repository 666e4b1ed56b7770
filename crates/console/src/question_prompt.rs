//! Questions of the agent: the user chooses among options or types an answer.

use std::collections::{BTreeMap, BTreeSet};

use anstyle::{AnsiColor, Style};
use crossterm::event::{KeyCode, KeyEvent, KeyModifiers};
use quipu_message::tool::{AskUserQuestionInput, UserQuestion};
use quipu_message::{Json, Maybe};
use quipu_render::{Cursor, Terminal};
use quipu_sdk::Decision;

use crate::editor::{Editor, KeyEffect};
use crate::prompt::{INTERRUPT_REASON, PromptStep};

#[cfg(test)]
mod tests;

const HEADING: Style = AnsiColor::Yellow.on_default().bold();
const DIM: Style = Style::new().dimmed();

/// Questions, one after another.
#[derive(Debug)]
pub(crate) struct QuestionPrompt {
    input: AskUserQuestionInput,
    /// Index of the question that is shown.
    current: usize,
    answers: BTreeMap<String, Json>,
    /// Index of the marked option; the number of options means an answer of the user's own.
    marked: usize,
    /// Options chosen so far, if several may be chosen.
    chosen: BTreeSet<usize>,
    /// An answer of the user's own, while it is typed.
    own_answer: Option<Editor>,
}

impl QuestionPrompt {
    /// A prompt for at least one question.
    pub(crate) fn new(input: AskUserQuestionInput) -> Self {
        let (answers, chosen) = (BTreeMap::new(), BTreeSet::new());
        Self { input, current: 0, answers, marked: 0, chosen, own_answer: None }
    }

    pub(crate) fn paste(&mut self, text: &str) {
        if let Some(answer) = &mut self.own_answer {
            answer.insert(text);
        }
    }

    pub(crate) fn handle_key(&mut self, key: KeyEvent) -> PromptStep {
        if let Some(answer) = &mut self.own_answer {
            match key.code {
                KeyCode::Esc => self.own_answer = None,
                _ if answer.handle_key(key) == KeyEffect::Submitted && !answer.text().trim().is_empty() => {
                    let text = answer.text().trim().to_owned();
                    return self.answer(text);
                }
                _ => {}
            }
            return PromptStep::Open;
        }
        if key.modifiers.intersects(KeyModifiers::CONTROL | KeyModifiers::ALT) {
            return PromptStep::Open;
        }
        let options = self.labels().len();
        match key.code {
            KeyCode::Up => self.marked = self.marked.checked_sub(1).unwrap_or(options),
            KeyCode::Down => self.marked = if self.marked == options { 0 } else { self.marked + 1 },
            KeyCode::Char('0') => self.own_answer = Some(Editor::default()),
            KeyCode::Char(digit @ '1'..='9') => {
                let index = digit as usize - '1' as usize;
                if index < options {
                    self.marked = index;
                    return self.choose(index);
                }
            }
            KeyCode::Char(' ') if self.is_multiple() && self.marked < options => return self.choose(self.marked),
            KeyCode::Enter if self.is_multiple() && !self.chosen.is_empty() => {
                let labels = self.labels();
                let chosen: Vec<String> = self.chosen.iter().filter_map(|index| labels.get(*index).cloned()).collect();
                return self.answer(chosen.join(", "));
            }
            KeyCode::Enter if self.marked == options => self.own_answer = Some(Editor::default()),
            KeyCode::Enter => return self.choose(self.marked),
            KeyCode::Esc => return PromptStep::Decided(Decision::interrupt(INTERRUPT_REASON)),
            _ => {}
        }
        PromptStep::Open
    }

    /// Chooses an option; if several may be chosen, it is chosen or not by turns.
    fn choose(&mut self, index: usize) -> PromptStep {
        if self.is_multiple() {
            if !self.chosen.remove(&index) {
                self.chosen.insert(index);
            }
            return PromptStep::Open;
        }
        let label = self.labels().get(index).cloned().unwrap_or_default();
        self.answer(label)
    }

    /// Answers the question that is shown and continues with the next.
    fn answer(&mut self, text: String) -> PromptStep {
        let question = self.question().and_then(|question| question.question.text()).unwrap_or_default().to_owned();
        self.answers.insert(question, Json::from_serialize(&text));
        self.current += 1;
        (self.marked, self.own_answer) = (0, None);
        self.chosen.clear();
        if self.current < self.input.questions.len() {
            return PromptStep::Open;
        }
        let answers = Maybe::Value(std::mem::take(&mut self.answers));
        PromptStep::Decided(Decision::allow_with(&AskUserQuestionInput { answers, ..self.input.clone() }))
    }

    fn question(&self) -> Option<&UserQuestion> {
        self.input.questions.get(self.current)
    }

    fn is_multiple(&self) -> bool {
        self.question().is_some_and(|question| question.multi_select.is_true())
    }

    fn labels(&self) -> Vec<String> {
        let options = self.question().and_then(|question| question.options.get()).into_iter().flatten();
        options.map(|option| option.label.text().unwrap_or_default().to_owned()).collect()
    }

    pub(crate) fn rows(&self, style: &Terminal) -> (Vec<String>, Option<Cursor>) {
        let Some(question) = self.question() else { return (Vec::new(), None) };
        let count = self.input.questions.len();
        let number = if count > 1 { format!("({} of {count}) ", self.current + 1) } else { String::new() };
        let mut rows = style.wrap(&format!("{number}{}", question.question.text().unwrap_or_default()), HEADING);
        let options = question.options.get().into_iter().flatten();
        for (index, option) in options.enumerate() {
            let mark = if index == self.marked { "›" } else { " " };
            let tick = match (self.is_multiple(), self.chosen.contains(&index)) {
                (false, _) => "",
                (true, true) => "[x] ",
                (true, false) => "[ ] ",
            };
            let label = option.label.text().unwrap_or_default();
            rows.extend(style.wrap(&format!("{mark} {}  {tick}{label}", index + 1), Style::new()));
            if let Some(description) = option.description.text().filter(|text| !text.is_empty()) {
                rows.push(style.truncate(&format!("     {description}"), DIM));
            }
        }
        if let Some(answer) = &self.own_answer {
            rows.extend(style.wrap("Your answer; Enter sends it, Esc goes back", DIM));
            let (text, cursor) = answer.layout(style.width.saturating_sub(2), 4);
            let cursor = Cursor { row: rows.len() + cursor.row, column: cursor.column + 2 };
            rows.extend(text.iter().map(|row| format!("› {row}")));
            return (rows, Some(cursor));
        }
        let mark = if self.marked == self.labels().len() { "›" } else { " " };
        rows.push(style.truncate(&format!("{mark} 0  type another answer"), Style::new()));
        let keys = if self.is_multiple() {
            "digits choose, Enter continues, Esc interrupts the turn"
        } else {
            "a digit or Enter chooses, Esc interrupts the turn"
        };
        rows.extend(style.wrap(keys, DIM));
        (rows, None)
    }
}

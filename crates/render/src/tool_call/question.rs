//! Describes questions of the agent to the user, with their answers.

use quipu_conversation::{ToolCard, ToolStatus};
use quipu_message::Json;
use quipu_message::tool::{AskUserQuestionInput, AskUserQuestionOutput};

use super::{ToolCallPart, ToolCallView};
use crate::sanitize::{sanitize, sanitize_line};

impl<'a> ToolCallView<'a> {
    /// Adds each question with its answer, or the result if there is no answer.
    pub(super) fn add_questions(&mut self, card: &'a ToolCard, input: &AskUserQuestionInput) {
        let output = card.output.as_ref().and_then(|output| output.read::<AskUserQuestionOutput>().ok());
        let answers = output.as_ref().and_then(|output| output.answers.get()).or(input.answers.get());
        let mut answered = 0;
        for question in &input.questions {
            let text = question.question.text().unwrap_or_default();
            let answer = answers.and_then(|answers| answers.get(text)).map(Json::extract_text);
            answered += usize::from(answer.is_some());
            let options = question.options.get().into_iter().flatten();
            self.parts.push(ToolCallPart::Question {
                text: sanitize(text).into_owned(),
                options: options.filter_map(|choice| choice.label.text()).map(sanitize_line).collect(),
                answer: answer.map(|answer| sanitize(&answer).into_owned()),
            });
        }
        let headers = input.questions.iter().filter_map(|question| question.header.text()).map(sanitize_line);
        self.subject = headers.collect::<Vec<_>>().join(", ");
        if answered == 0 || card.status == ToolStatus::Failed {
            self.add_result(card);
        }
    }
}

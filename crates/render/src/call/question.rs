//! Questions the agent put to the person, with their answers.

use quipu_conversation::{Status, ToolCard};
use quipu_message::Json;
use quipu_message::tool::{AskInput, AskOutput};

use super::{Call, Part};
use crate::clean::{clean, one_line};

impl<'a> Call<'a> {
    /// Adds questions and answers.
    pub(super) fn add_questions(&mut self, card: &'a ToolCard, input: &AskInput) {
        let output = card.output.as_ref().and_then(|output| output.read::<AskOutput>().ok());
        let answers = output.as_ref().and_then(|output| output.answers.get()).or(input.answers.get());
        let mut answered = 0;
        for question in &input.questions {
            let asked = question.question.text().unwrap_or_default();
            let answer = answers.and_then(|answers| answers.get(asked)).map(Json::words);
            answered += usize::from(answer.is_some());
            let options = question.options.get().into_iter().flatten();
            self.parts.push(Part::Question {
                text: clean(asked).into_owned(),
                options: options.filter_map(|choice| choice.label.text()).map(one_line).collect(),
                answer: answer.map(|answer| clean(&answer).into_owned()),
            });
        }
        let headers = input.questions.iter().filter_map(|question| question.header.text()).map(one_line);
        self.subject = headers.collect::<Vec<_>>().join(", ");
        if answered == 0 || card.status == Status::Failed {
            self.add_result(card);
        }
    }
}

//! Questions of one kind, and how many were answered.

use anyhow::Result;
use cuemark_core::stats::wilson;
use serde_json::{Value, json};

use super::Noise;
use super::ask::{Answer, Least, Server};
use super::films::Film;

/// What is asked.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Asked {
    /// What is said, word by word.
    Said,
    /// What is said, in other words.
    Otherwise,
    /// What is written, word by word.
    Written,
    /// `Said`, of pictures alone.
    SaidBySight,
    /// `Otherwise`, of pictures alone.
    OtherwiseBySight,
    /// `Written`, of pictures alone.
    WrittenBySight,
}

impl Asked {
    pub(super) const ALL: [Self; 6] =
        [Self::Said, Self::Otherwise, Self::Written, Self::SaidBySight, Self::OtherwiseBySight, Self::WrittenBySight];

    pub(super) fn name(self) -> &'static str {
        match self {
            Self::Said => "said",
            Self::Otherwise => "said, in other words",
            Self::Written => "written",
            Self::SaidBySight => "said, by sight alone",
            Self::OtherwiseBySight => "said, in other words, by sight alone",
            Self::WrittenBySight => "written, by sight alone",
        }
    }

    /// Whether it is asked of films with captions.
    pub(super) fn is_written(self) -> bool {
        matches!(self, Self::Written | Self::WrittenBySight)
    }

    fn is_by_sight(self) -> bool {
        matches!(self, Self::SaidBySight | Self::OtherwiseBySight | Self::WrittenBySight)
    }

    fn is_otherwise(self) -> bool {
        matches!(self, Self::Otherwise | Self::OtherwiseBySight)
    }

    fn question(self, film: &Film) -> String {
        let words = film.otherwise.as_ref().filter(|_| self.is_otherwise()).unwrap_or(&film.words);
        if self.is_by_sight() { format!("seen: {words}") } else { words.clone() }
    }
}

/// One line of the table.
pub(super) struct Row {
    asked: Asked,
    noise: Noise,
    questions: usize,
    /// Questions whose film came first.
    pub(super) first: usize,
    /// Whose film is that of one of the first five different films.
    among_five: usize,
    /// Whose film came first with a span that meets the truth.
    placed: usize,
    /// Whose film comes first of what people see, who are not shown improbable answers.
    shown: usize,
}

impl Row {
    /// Asks for every film, and tells of those that did not come first.
    pub(super) fn ask(server: &Server, asked: Asked, noise: Noise, films: &[Film]) -> Result<(Self, Vec<Value>)> {
        let mut row = Self { asked, noise, questions: films.len(), first: 0, among_five: 0, placed: 0, shown: 0 };
        let mut missed = Vec::new();
        for film in films {
            let question = asked.question(film);
            let answers = server.ask(&question, Least::Nothing)?;
            let first = answers.first().filter(|answer| answer.video == film.name);
            row.first += usize::from(first.is_some());
            row.among_five += usize::from(among(5, &answers, &film.name));
            row.placed += usize::from(first.is_some_and(|answer| answer.span.iou(film.truth) > 0.0));
            let shown = server.ask(&question, Least::AsShown)?;
            row.shown += usize::from(shown.first().is_some_and(|answer| answer.video == film.name));
            if first.is_none() && !asked.is_by_sight() && !asked.is_otherwise() {
                let came = answers
                    .first()
                    .map(|first| format!("{} ({}), {:.2}", first.video, first.because, first.probability));
                missed.push(json!({
                    "noise": noise.name(), "film": film.name, "question": question, "first": came,
                    "read": server.lines(&film.name)?.join(" / "),
                }));
            }
        }
        Ok((row, missed))
    }

    /// Whether the check is about this one: own words, no noise.
    pub(super) fn is_judged(&self) -> bool {
        self.noise == Noise::Clean && matches!(self.asked, Asked::Said | Asked::Written)
    }

    pub(super) fn share(&self, hits: usize) -> f64 {
        hits as f64 / self.questions.max(1) as f64
    }

    pub(super) fn to_markdown(&self) -> String {
        let with_interval = |hits: usize| {
            let interval = wilson(hits, self.questions);
            format!("{:.1} ({:.1} to {:.1})", 100.0 * self.share(hits), 100.0 * interval.low, 100.0 * interval.high)
        };
        format!(
            "| {} | {} | {} | {} | {} | {:.1} | {:.1} |\n",
            self.noise.name(),
            self.asked.name(),
            self.questions,
            with_interval(self.first),
            with_interval(self.among_five),
            100.0 * self.share(self.placed),
            100.0 * self.share(self.shown),
        )
    }

    pub(super) fn to_json(&self) -> Value {
        json!({
            "noise": self.noise.name(), "asked": self.asked.name(), "questions": self.questions, "first": self.first,
            "among_five": self.among_five, "placed": self.placed, "shown": self.shown,
            "first_95": wilson(self.first, self.questions), "among_five_95": wilson(self.among_five, self.questions),
        })
    }
}

/// Whether `name` is one of the first `count` different films. A film may have several answers.
fn among(count: usize, answers: &[Answer], name: &str) -> bool {
    let mut films: Vec<&str> = Vec::new();
    for answer in answers {
        if !films.contains(&answer.video.as_str()) {
            films.push(&answer.video);
        }
    }
    films.iter().take(count).any(|film| *film == name)
}

#[cfg(test)]
mod tests {
    use cuemark_core::Span;

    use super::*;

    #[test]
    fn films_are_counted_once_however_many_answers_they_have() {
        let answer = |video: &str| Answer {
            video: video.to_owned(),
            span: Span::new(0.0, 1.0).unwrap(),
            probability: 0.1,
            because: String::new(),
        };
        let answers = ["a", "a", "b"].map(answer);
        assert!(among(2, &answers, "b"));
        assert!(!among(1, &answers, "b"));
        assert!(!among(5, &answers, "c"));
    }
}

//! What people type: questions, addresses, lists of metrics; and sentences that files bring.

use camino::Utf8Path;
use cuemark_metrics::parse_list;
use cuemark_search::{EngineUrl, Question};
use cuemark_text::{first_verb, shallow_parse, tokenize, verbs, words_of};

use crate::Turn;

/// Free text: taken apart into words, tags and phrases, asked as a question, taken for an address or for metrics. Tokens lie
/// in the text, in order.
pub fn text(path: &Utf8Path, turn: Turn) {
    let Ok(bytes) = std::fs::read(path) else { return };
    let text = String::from_utf8_lossy(&bytes);
    let ways: [fn(&str); 6] = [
        |text| {
            let tokens = tokenize(text);
            assert!(tokens.iter().map(|token| token.text.len()).sum::<usize>() <= text.len(), "tokens overlap");
        },
        |text| drop(shallow_parse(text)),
        |text| drop((verbs(text), first_verb(text), words_of(text))),
        |text| {
            let question = Question::new(text);
            assert!(question.text.is_none_or(|text| !text.trim().is_empty()), "an empty question");
        },
        |text| {
            if let Ok(url) = text.parse::<EngineUrl>() {
                assert!(url.to_string().parse::<EngineUrl>().is_ok_and(|again| again == url), "{url} is not itself");
            }
        },
        |text| drop(parse_list(text)),
    ];
    turn.of(ways).iter().for_each(|way| way(&text));
}

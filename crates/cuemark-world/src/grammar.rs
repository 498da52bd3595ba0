//! From a meaning to a sentence and its exact parse.
//!
//! ```text
//! sentence  subject verb [tail] [object] [way] [tempo] [scene] [meanwhile] [order]
//! subject   name | the [size] [colour] shape | something
//! way       to the left | from the right
//! scene     on the stage                                    says nothing, as people often do
//! meanwhile while it talks about the weather
//! order     before it leaves | after it leaves | and then leaves
//! ```

use cuemark_core::Rng;
use cuemark_text::{Dependency, Parse, Phrase, Pos, Relation, TaggedToken};

use crate::lexicon::{self, Tail, VerbWords};
use crate::{Also, Meaning, Verb, Way, Who, looks};

/// How a description begins.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(crate) enum Article {
    /// *the red ball*, or a name: somebody in particular.
    #[default]
    The,
    /// *a red ball*: whoever fits.
    A,
}

/// A sentence with its parse.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Sentence {
    pub(crate) text: String,
    pub(crate) parse: Parse,
}

/// Says `meaning`, with at most `vocabulary` words to choose from for each of its parts.
pub(crate) fn say(meaning: &Meaning, article: Article, vocabulary: usize, rng: &mut Rng) -> Sentence {
    let mut writer = Writer { vocabulary: vocabulary.max(1), article, ..Writer::default() };
    writer.sentence(meaning, rng);
    writer.finish()
}

#[derive(Default)]
struct Writer {
    vocabulary: usize,
    article: Article,
    text: String,
    tokens: Vec<TaggedToken>,
    phrases: Vec<Phrase>,
    dependencies: Vec<Dependency>,
}

impl Writer {
    fn sentence(&mut self, meaning: &Meaning, rng: &mut Rng) {
        let subject = self.describe(meaning.who, rng);
        let verb = self.main_verb(meaning, subject, rng);
        if let Some(way) = meaning.way {
            self.way(meaning.verb, way, verb);
        }
        if let Some(tempo) = meaning.tempo {
            let adverb = self.word(self.choose(lexicon::tempo(tempo), rng), Pos::Adv);
            self.hang(adverb, verb, Relation::Advmod);
        }
        if self.vocabulary > 1 && rng.chance(0.15) {
            let scene = self.prepositional("on", &["stage"], verb, rng);
            self.takes_part(verb, scene);
        }
        if let Some(topic) = meaning.topic {
            let talks = self.clause("while", "talks", verb);
            let about = self.prepositional("about", lexicon::topic(topic), talks, rng);
            self.takes_part(talks, about);
        }
        match meaning.also {
            Some(Also::Before(other)) => self.subordinate("before", other, verb, rng),
            Some(Also::After(other)) => self.subordinate("after", other, verb, rng),
            Some(Also::Then(other)) => self.second_verb(other, verb, subject, rng),
            None => {}
        }
    }

    /// Somebody; returns the head word.
    fn describe(&mut self, who: Who, rng: &mut Rng) -> usize {
        if who == Who::default() {
            return self.word("something", Pos::Pron);
        }
        let name = who.colour.zip(who.shape).and_then(|(colour, shape)| looks::name_of(colour, shape));
        if let (Some(name), None, Article::The) = (name, who.size, self.article)
            && rng.chance(0.5)
        {
            return self.word(name, Pos::Propn);
        }
        let size = who.size.map(|size| self.choose(lexicon::size(size), rng));
        let colour = who.colour.map(|colour| self.choose(lexicon::colour(colour), rng));
        let noun = self.choose(lexicon::shape(who.shape), rng);
        let first = size.or(colour).unwrap_or(noun);
        let article = self.word(self.article_before(first), Pos::Det);
        let adjectives: Vec<usize> = size.into_iter().chain(colour).map(|word| self.word(word, Pos::Adj)).collect();
        let noun = self.word(noun, Pos::Noun);
        self.hang(article, noun, Relation::Det);
        for adjective in adjectives {
            self.hang(adjective, noun, Relation::Amod);
        }
        noun
    }

    fn article_before(&self, word: &str) -> &'static str {
        match self.article {
            Article::The => "the",
            Article::A if word.starts_with(['a', 'e', 'i', 'o', 'u']) => "an",
            Article::A => "a",
        }
    }

    /// The verb of the sentence with its subject, tail and object; returns the verb.
    fn main_verb(&mut self, meaning: &Meaning, subject: usize, rng: &mut Rng) -> usize {
        let words = self.verb_words(meaning.verb, rng);
        let verb = if self.vocabulary > 2 && rng.chance(0.25) {
            let is = self.word("is", Pos::Aux);
            let verb = self.word(words.participle, Pos::Verb);
            self.hang(is, verb, Relation::Aux);
            verb
        } else {
            self.word(words.present, Pos::Verb)
        };
        self.hang(subject, verb, Relation::Nsubj);
        self.phrases.push(Phrase { verb, nouns: Vec::new() });
        self.takes_part(verb, subject);
        let preposition = self.tail(words, verb);
        // Nobody meets nobody.
        let anybody = (meaning.verb == Verb::Meet).then(Who::default);
        if let Some(with) = meaning.with.or(anybody) {
            let object = self.describe(with, rng);
            match preposition {
                Some(preposition) => {
                    self.hang(preposition, object, Relation::Case);
                    self.hang(object, verb, Relation::Nmod);
                }
                None => self.hang(object, verb, Relation::Dobj),
            }
            self.takes_part(verb, object);
        }
        verb
    }

    /// What belongs to the verb's own words; returns a preposition that still wants its noun.
    fn tail(&mut self, words: VerbWords, verb: usize) -> Option<usize> {
        let (word, tag, relation) = match words.tail {
            Tail::None => return None,
            Tail::Preposition(word) => return Some(self.word(word, Pos::Adp)),
            Tail::Particle(word) => (word, Pos::Adp, Relation::CompoundPrt),
            Tail::Adverb(word) => (word, Pos::Adv, Relation::Advmod),
            Tail::Adjective(word) => (word, Pos::Adj, Relation::Xcomp),
        };
        let index = self.word(word, tag);
        self.hang(index, verb, relation);
        None
    }

    fn way(&mut self, verb: Verb, way: Way, head: usize) {
        let preposition = self.word(if verb == Verb::Enter { "from" } else { "to" }, Pos::Adp);
        let article = self.word("the", Pos::Det);
        let side = self.word(if way == Way::Left { "left" } else { "right" }, Pos::Noun);
        self.hang(preposition, side, Relation::Case);
        self.hang(article, side, Relation::Det);
        self.hang(side, head, Relation::Nmod);
        self.takes_part(head, side);
    }

    /// *on the stage*; returns the noun.
    fn prepositional(
        &mut self,
        preposition: &'static str,
        nouns: &[&'static str],
        head: usize,
        rng: &mut Rng,
    ) -> usize {
        let preposition = self.word(preposition, Pos::Adp);
        let article = self.word("the", Pos::Det);
        let noun = self.word(self.choose(nouns, rng), Pos::Noun);
        self.hang(preposition, noun, Relation::Case);
        self.hang(article, noun, Relation::Det);
        self.hang(noun, head, Relation::Nmod);
        noun
    }

    /// *while it talks*, below `head`; returns the verb.
    fn clause(&mut self, opener: &'static str, present: &'static str, head: usize) -> usize {
        let opener = self.word(opener, Pos::Sconj);
        let subject = self.word("it", Pos::Pron);
        let verb = self.word(present, Pos::Verb);
        self.hang(opener, verb, Relation::Mark);
        self.hang(subject, verb, Relation::Nsubj);
        self.hang(verb, head, Relation::Advcl);
        self.phrases.push(Phrase { verb, nouns: Vec::new() });
        verb
    }

    fn subordinate(&mut self, opener: &'static str, other: Verb, head: usize, rng: &mut Rng) {
        let words = self.verb_words(other, rng);
        let verb = self.clause(opener, words.present, head);
        self.tail(words, verb);
    }

    /// *and then leaves*: the subject is the first verb's.
    fn second_verb(&mut self, other: Verb, first: usize, subject: usize, rng: &mut Rng) {
        let words = self.verb_words(other, rng);
        let and = self.word("and", Pos::Cconj);
        let then = self.word("then", Pos::Adv);
        let verb = self.word(words.present, Pos::Verb);
        self.hang(and, first, Relation::Cc);
        self.hang(then, verb, Relation::Advmod);
        self.hang(verb, first, Relation::Conj);
        self.phrases.push(Phrase { verb, nouns: Vec::new() });
        self.takes_part(verb, subject);
        self.tail(words, verb);
    }

    fn verb_words(&self, verb: Verb, rng: &mut Rng) -> VerbWords {
        let all = lexicon::verb(verb);
        let known = all.get(..self.vocabulary.min(all.len())).unwrap_or(all);
        let plain = VerbWords { present: "moves", participle: "moving", tail: Tail::None };
        rng.pick(known).copied().unwrap_or(plain)
    }

    /// One of the words that the vocabulary allows.
    fn choose(&self, words: &[&'static str], rng: &mut Rng) -> &'static str {
        let known = words.get(..self.vocabulary.min(words.len())).unwrap_or(words);
        rng.pick(known).copied().unwrap_or_default()
    }

    fn word(&mut self, text: &str, tag: Pos) -> usize {
        if !self.text.is_empty() {
            self.text.push(' ');
        }
        let start = self.text.len();
        self.text.push_str(text);
        self.tokens.push(TaggedToken { text: text.to_owned(), tag, bytes: Some((start, self.text.len())) });
        self.tokens.len() - 1
    }

    fn hang(&mut self, dependent: usize, head: usize, relation: Relation) {
        self.dependencies.push(Dependency { head, dependent, relation });
    }

    /// Adds `noun` to the phrase of `verb`; a pronoun is no noun.
    fn takes_part(&mut self, verb: usize, noun: usize) {
        let is_noun = self.tokens.get(noun).is_some_and(|token| matches!(token.tag, Pos::Noun | Pos::Propn));
        if let (true, Some(phrase)) = (is_noun, self.phrases.iter_mut().find(|phrase| phrase.verb == verb)) {
            phrase.nouns.push(noun);
        }
    }

    fn finish(mut self) -> Sentence {
        self.dependencies.sort_by_key(|dependency| dependency.dependent);
        let parse = Parse { tokens: self.tokens, phrases: self.phrases, dependencies: self.dependencies };
        Sentence { text: self.text, parse }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Colour, Shape, Size, Tempo, Topic};
    use cuemark_core::Rng;
    use proptest::prelude::*;

    fn red_square() -> Who {
        Who { colour: Some(Colour::Red), shape: Some(Shape::Square), size: None }
    }

    fn spins(who: Who) -> Meaning {
        Meaning { who, verb: Verb::Spin, with: None, way: None, tempo: None, topic: None, also: None }
    }

    fn plainly(meaning: &Meaning) -> Sentence {
        say(meaning, Article::The, 1, &mut Rng::new(1))
    }

    #[test]
    fn order_words_open_a_clause_below_the_main_verb() {
        let sentence = plainly(&Meaning { also: Some(Also::Before(Verb::Leave)), ..spins(red_square()) });
        assert_eq!(sentence.text, "the red square spins before it leaves");
        let tags: Vec<Pos> = sentence.parse.tokens.iter().map(|token| token.tag).collect();
        assert_eq!(tags, [Pos::Det, Pos::Adj, Pos::Noun, Pos::Verb, Pos::Sconj, Pos::Pron, Pos::Verb]);
        let hangs = |dependent: usize| sentence.parse.heads()[dependent];
        let expected = [
            Some((2, Relation::Det)),
            Some((2, Relation::Amod)),
            Some((3, Relation::Nsubj)),
            None,
            Some((6, Relation::Mark)),
            Some((6, Relation::Nsubj)),
            Some((3, Relation::Advcl)),
        ];
        assert_eq!((0..7).map(hangs).collect::<Vec<_>>(), expected);
        let phrases = [Phrase { verb: 3, nouns: vec![2] }, Phrase { verb: 6, nouns: vec![] }];
        assert_eq!(sentence.parse.phrases, phrases);
    }

    #[test]
    fn meanings_are_said_in_full() {
        let say = |meaning: Meaning| plainly(&meaning).text;
        let slides = Meaning { verb: Verb::Slide, way: Some(Way::Left), ..spins(red_square()) };
        assert_eq!(say(slides), "the red square slides to the left");
        assert_eq!(say(Meaning { verb: Verb::Enter, ..slides }), "the red square enters from the left");
        let star = Who { colour: None, shape: Some(Shape::Star), size: Some(Size::Large) };
        let meets = Meaning { verb: Verb::Meet, with: Some(star), ..spins(red_square()) };
        assert_eq!(say(meets), "the red square meets the large star");
        let busy = Meaning { tempo: Some(Tempo::Quick), topic: Some(Topic::Moon), ..spins(Who::default()) };
        assert_eq!(say(busy), "something spins quickly while it talks about the moon");
        let then = Meaning { also: Some(Also::Then(Verb::Jump)), ..spins(red_square()) };
        assert_eq!(say(then), "the red square spins and then jumps");
    }

    #[test]
    fn names_stand_for_colour_and_shape() {
        let milo = Who { colour: Some(Colour::Red), shape: Some(Shape::Ball), size: None };
        let texts: Vec<String> =
            (0..40).map(|seed| say(&spins(milo), Article::The, 1, &mut Rng::new(seed)).text).collect();
        assert!(texts.iter().any(|text| text == "Milo spins"));
        assert!(texts.iter().any(|text| text == "the red ball spins"));
        let texts = (0..40).map(|seed| say(&spins(milo), Article::A, 1, &mut Rng::new(seed)).text);
        assert!(texts.into_iter().all(|text| text == "a red ball spins"), "whoever fits has no name");
    }

    fn any_meaning() -> impl Strategy<Value = Meaning> {
        let who = || {
            let colour = prop::option::of(prop::sample::select(Colour::ALL.to_vec()));
            let shape = prop::option::of(prop::sample::select(Shape::ALL.to_vec()));
            let size = prop::option::of(prop::sample::select(Size::ALL.to_vec()));
            (colour, shape, size).prop_map(|(colour, shape, size)| Who { colour, shape, size })
        };
        let verb = || prop::sample::select(Verb::ALL.to_vec());
        let other = || verb().prop_filter("never a meeting", |verb| *verb != Verb::Meet);
        let also = prop_oneof![
            Just(None),
            other().prop_map(|verb| Some(Also::Before(verb))),
            other().prop_map(|verb| Some(Also::After(verb))),
            other().prop_map(|verb| Some(Also::Then(verb))),
        ];
        let way = prop::option::of(prop::sample::select(vec![Way::Left, Way::Right]));
        let tempo = prop::option::of(prop::sample::select(vec![Tempo::Slow, Tempo::Quick]));
        let topic = prop::option::of(prop::sample::select(Topic::ALL.to_vec()));
        (who(), verb(), prop::option::of(who()), way, tempo, topic, also)
            .prop_map(|(who, verb, with, way, tempo, topic, also)| Meaning { who, verb, with, way, tempo, topic, also })
    }

    proptest! {
        #[test]
        fn every_sentence_has_one_root_and_a_sound_parse(meaning in any_meaning(), vocabulary in 1usize..5, seed: u64) {
            for article in [Article::The, Article::A] {
                let Sentence { text, parse } = say(&meaning, article, vocabulary, &mut Rng::new(seed));
                prop_assert!(parse.check().is_ok());
                let words: Vec<&str> = parse.tokens.iter().map(|token| token.text.as_str()).collect();
                prop_assert_eq!(&words.join(" "), &text);
                for token in &parse.tokens {
                    let (start, end) = token.bytes.unwrap();
                    prop_assert_eq!(&text[start..end], token.text.as_str());
                }
                let roots: Vec<usize> = (0..words.len()).filter(|index| parse.heads()[*index].is_none()).collect();
                prop_assert_eq!(&roots, &[parse.first_verb().unwrap()]);
                let verbs: Vec<usize> = (0..words.len()).filter(|index| parse.tokens[*index].tag == Pos::Verb).collect();
                let phrases: Vec<usize> = parse.phrases.iter().map(|phrase| phrase.verb).collect();
                prop_assert_eq!(verbs, phrases);
                for noun in parse.phrases.iter().flat_map(|phrase| &phrase.nouns) {
                    prop_assert!(matches!(parse.tokens[*noun].tag, Pos::Noun | Pos::Propn));
                }
            }
        }
    }
}

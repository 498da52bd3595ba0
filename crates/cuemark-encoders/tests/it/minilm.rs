//! MiniLM with its real weights against sentence-transformers. Skipped where they have not been pulled.

use cuemark_encoders::text::{self, Reference, TextEncoder};
use cuemark_encoders::weights::{Cache, Pulled, find};
use cuemark_tensor::Device;
use cuemark_testkit::{fixture, weights};

fn minilm() -> Option<Box<dyn TextEncoder>> {
    let folder = Cache::at(weights("minilm")?).locate(find("minilm").unwrap()).unwrap();
    Some(text::from_folder(&folder, &Device::Cpu).unwrap())
}

#[test]
fn vectors_and_neighbours_are_those_of_sentence_transformers() {
    let Some(encoder) = minilm() else { return };
    let reference = Reference::read(&fixture("encoders/minilm.safetensors")).unwrap();
    assert_eq!(reference.sentences.len(), 200);
    let agreement = reference.compare(&*encoder).unwrap();
    assert!(agreement.smallest_cosine >= 0.9999, "{agreement:?}");
    assert_eq!((agreement.neighbours, agreement.other_order), (40, 0), "{agreement:?}");
    // What comes with the program agrees too, odd sentences and one that is cut among them.
    let agreement = Reference::of("minilm").unwrap().compare(&*encoder).unwrap();
    assert!(agreement.smallest_cosine >= 0.9999, "{agreement:?}");
}

#[test]
fn meaning_counts_more_than_words() {
    let Some(encoder) = minilm() else { return };
    let sentences = ["a man opens the door", "somebody unlocks an entrance", "a man closes his eyes"];
    let vectors = encoder.encode(&sentences).unwrap();
    let likeness = |other: &[f32]| vectors[0].iter().zip(other).map(|(a, b)| a * b).sum::<f32>();
    assert!(likeness(&vectors[1]) > likeness(&vectors[2]));
}

#[test]
fn weights_that_are_here_are_checked_and_not_fetched_again() {
    let Some(root) = weights("minilm") else { return };
    let (folder, pulled) = Cache::at(root).pull(find("minilm").unwrap(), &mut |_| ()).unwrap();
    assert_eq!(pulled, Pulled::AlreadyHere);
    assert!(folder.file("tokenizer.json").unwrap().is_file());
}

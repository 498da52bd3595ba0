//! Digests by which evaluations of the same queries find each other and their truth file.

use cuemark_core::Truth;
use cuemark_core::digest::hex;
use sha2::{Digest as _, Sha256};

/// Everything that a truth file of ours would say, texts included.
pub(super) fn of_truth(truths: &[Truth]) -> String {
    let mut hasher = Sha256::new();
    for truth in truths {
        feed(&mut hasher, truth);
        text(&mut hasher, &truth.query.text);
        text(&mut hasher, truth.kind.as_deref().unwrap_or_default());
        hasher.update(truth.duration().unwrap_or(-1.0).to_le_bytes());
        // Truth without ratings has the digest that it had before there were any.
        if let Some(rated) = &truth.highlights {
            hasher.update(rated.clip_len.seconds().to_le_bytes());
            for (clip, grades) in rated.clips.iter().zip(&rated.ratings) {
                hasher.update((*clip as u64).to_le_bytes());
                hasher.update((grades.len() as u64).to_le_bytes());
                hasher.update(grades);
            }
        }
    }
    print_of(hasher)
}

/// Ids, videos and moments: the same for every rewriting of the queries' texts.
pub(super) fn of_pairing(truths: &[Truth]) -> String {
    let mut hasher = Sha256::new();
    truths.iter().for_each(|truth| feed(&mut hasher, truth));
    print_of(hasher)
}

fn feed(hasher: &mut Sha256, truth: &Truth) {
    text(hasher, truth.query.id.as_str());
    hasher.update((truth.moments.len() as u64).to_le_bytes());
    for graded in &truth.moments {
        text(hasher, graded.moment.video.as_str());
        for number in [graded.moment.span.start(), graded.moment.span.end()] {
            hasher.update(number.to_le_bytes());
        }
        hasher.update(graded.relevance.map_or(-1.0, cuemark_core::Relevance::value).to_le_bytes());
    }
}

/// Length first, so that no two lists of texts feed the same bytes.
fn text(hasher: &mut Sha256, text: &str) {
    hasher.update((text.len() as u64).to_le_bytes());
    hasher.update(text);
}

/// The first 128 bits.
fn print_of(hasher: Sha256) -> String {
    hex(&hasher.finalize()[..16])
}

//! Multi-video pools whose positives are known.

use cuemark_core::{GradedMoment, Rng, Truth, VideoId};
use rayon::prelude::*;

use crate::films::SplitFilms;
use crate::queries::Asked;
use crate::{Film, WorldOptions, relevance};

/// Videos in a pool, where the split has as many that qualify.
const SIZE: usize = 50;
/// Most positive videos in a pool, the query's own among them.
const POSITIVES: usize = 5;
/// A video whose best moment is above this is no clear negative and stays out.
const CLEARLY_WRONG: u8 = 2;

/// A pool for each query of a split. Its moments are all right answers in it; every other video is clearly wrong.
pub(crate) fn write(split: &SplitFilms, options: &WorldOptions) -> Vec<Truth> {
    let films: Vec<&Film> = split.only_films().collect();
    let asked: Vec<&Asked> = split.asked().collect();
    asked.into_par_iter().filter_map(|asked| pool(asked, &films, options.seed)).collect()
}

fn pool(asked: &Asked, films: &[&Film], seed: u64) -> Option<Truth> {
    let own = asked.truth.video.as_ref()?;
    let mut rng = Rng::stream(seed, &format!("pool {}", asked.truth.query.id));
    let best = |film: &Film| {
        let grades = relevance::moments(film).into_iter().map(|span| relevance::grade(&asked.meaning, film, span));
        grades.max().unwrap_or(0)
    };
    let mut positives: Vec<&Film> = Vec::new();
    let mut negatives: Vec<&Film> = Vec::new();
    for film in films.iter().filter(|film| film.video != own.id) {
        match best(film) {
            relevance::FULL => positives.push(film),
            grade if grade <= CLEARLY_WRONG => negatives.push(film),
            _ => {}
        }
    }
    rng.shuffle(&mut positives);
    rng.shuffle(&mut negatives);
    let own = films.iter().find(|film| film.video == own.id)?;
    positives.insert(0, own);
    positives.truncate(POSITIVES);
    negatives.truncate(SIZE - positives.len());
    let moments = positives.iter().flat_map(|film| {
        relevance::answers(&asked.meaning, film).into_iter().map(|span| GradedMoment::right(film.video.clone(), span))
    });
    let moments = moments.collect();
    let mut pool: Vec<VideoId> = positives.iter().chain(&negatives).map(|film| film.video.clone()).collect();
    pool.sort_unstable();
    Some(Truth { moments, pool: Some(pool), kind: asked.truth.kind.clone(), ..Truth::bare(asked.truth.query.clone()) })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::films;

    #[test]
    fn pools_hold_their_positives_and_nothing_doubtful() {
        let options = WorldOptions { videos: 600, ..WorldOptions::default() };
        let splits = films::write_all(&options);
        let split = &splits[2];
        let pools = write(split, &options);
        assert_eq!(pools.len(), split.asked().count());
        let mut several = 0;
        for (truth, asked) in pools.iter().zip(split.asked()) {
            let pool = truth.pool.as_ref().unwrap();
            assert!(pool.len() <= SIZE && pool.contains(&asked.truth.video.as_ref().unwrap().id));
            let mut positives: Vec<_> = truth.moments.iter().map(|graded| &graded.moment.video).collect();
            positives.dedup();
            several += usize::from(positives.len() > 1);
            assert!((1..=POSITIVES).contains(&positives.len()));
            for film in split.only_films().filter(|film| pool.contains(&film.video)) {
                let right = !relevance::answers(&asked.meaning, film).is_empty();
                assert_eq!(right, positives.contains(&&film.video), "{}", truth.query.text);
            }
        }
        assert!(several * 10 > pools.len(), "{several} of {} queries have several positives", pools.len());
    }
}

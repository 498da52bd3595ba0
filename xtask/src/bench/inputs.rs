//! Inputs of `bench eval`: made up from a seed, in the published layouts and at the published sizes.
//!
//! The same bytes on every machine, so that results of different days can be compared. Made once and kept below the
//! build folder. Half of the predictions lie near the truth, so that an evaluator has something to find.

use std::fs::File;
use std::io::{self, BufWriter, Write};
use std::path::{Path, PathBuf};

use anyhow::{Context as _, Result};
use cuemark_core::Rng;

const SEED: u64 = 20_240_617;

/// A truth file and a prediction file.
pub(crate) struct Inputs {
    /// What is right.
    pub(crate) truth: PathBuf,
    /// What a method might have said.
    pub(crate) predictions: PathBuf,
}

/// Writes `path` unless it is there already; a file that is there is whole.
fn make(path: &Path, write: impl FnOnce(&mut dyn Write) -> io::Result<()>) -> Result<()> {
    if path.exists() {
        return Ok(());
    }
    let unfinished = path.with_extension("unfinished");
    let finished = || -> io::Result<()> {
        let mut out = BufWriter::with_capacity(1 << 20, File::create(&unfinished)?);
        write(&mut out)?;
        out.flush()?;
        std::fs::rename(&unfinished, path)
    };
    finished().with_context(|| path.display().to_string())
}

/// Two numbers in seconds: start and end of something that is written to a file.
type Window = [f64; 2];

/// A window of `shortest` to `longest` seconds somewhere in a video, on multiples of `step` seconds.
fn window(rng: &mut Rng, duration: f64, shortest: f64, longest: f64, step: f64) -> Window {
    let round = |seconds: f64| (seconds / step).round() * step;
    let length = rng.between(shortest, longest.min(duration));
    let start = round(rng.between(0.0, duration - length));
    [start, start + round(length).max(step)]
}

/// A window whose ends are at most `by` seconds off, on multiples of `step` seconds.
fn near(rng: &mut Rng, [start, end]: Window, by: f64, step: f64) -> Window {
    let round = |seconds: f64| (seconds / step).round() * step;
    let start = round((start + rng.between(-by, by)).max(0.0));
    [start, round(end + rng.between(-by, by)).max(start + step)]
}

/// A JSON array of things that are JSON already.
fn array(items: impl Iterator<Item = String>) -> String {
    let items: Vec<String> = items.collect();
    format!("[{}]", items.join(","))
}

/// TVR's validation split (10,895 queries about 2,179 videos) and a submission to its three tasks, 100 predictions
/// each: 3.3 million in all.
pub(crate) fn tvr(folder: &Path) -> Result<Inputs> {
    const VIDEOS: usize = 2_179;
    const QUERIES: usize = 10_895;
    const DEPTH: usize = 100;
    const FIRST_INDEX: usize = 19_614;
    let files = Inputs { truth: folder.join("tvr-truth.jsonl"), predictions: folder.join("tvr-predictions.json") };
    let mut rng = Rng::stream(SEED, "tvr truth");
    let durations: Vec<f64> = (0..VIDEOS).map(|_| rng.between(55.0, 95.0).round()).collect();
    let truth: Vec<Window> =
        (0..QUERIES).map(|query| window(&mut rng, durations[query % VIDEOS], 2.0, 18.0, 0.01)).collect();
    let name = |video: usize| format!("show_s01e01_seg02_clip_{video:04}");
    make(&files.truth, |out| {
        for (query, [start, end]) in truth.iter().enumerate() {
            let (video, kind) = (query % VIDEOS, ["v", "v", "v", "v", "t", "vt"][query % 6]);
            let (name, duration) = (name(video), durations[video]);
            write!(out, r#"{{"vid_name": "{name}", "duration": {duration:.2}, "ts": [{start:.2}, {end:.2}], "#)?;
            writeln!(out, r#""desc": "Somebody does thing {query}.", "type": "{kind}", "desc_id": {query}}}"#)?;
        }
        Ok(())
    })?;
    make(&files.predictions, |out| {
        let mut rng = Rng::stream(SEED, "tvr predictions");
        let index: Vec<String> =
            (0..VIDEOS).map(|video| format!(r#""{}":{}"#, name(video), FIRST_INDEX + video)).collect();
        write!(out, r#"{{"video2idx":{{{}}}"#, index.join(","))?;
        for task in ["VCMR", "SVMR", "VR"] {
            write!(out, r#","{task}":["#)?;
            for (query, span) in truth.iter().enumerate() {
                let own = query % VIDEOS;
                let first = rng.below(VIDEOS);
                let ranked = array((0..DEPTH).map(|rank| {
                    let score = 20.0 - rank as f64 / 10.0;
                    let video = match task {
                        "SVMR" => own,
                        "VCMR" if rng.chance(0.1) => own,
                        // Steps of 7 visit a video twice only after all of them.
                        _ => (first + 7 * rank) % VIDEOS,
                    };
                    let [start, end] = match task {
                        "VR" => [0.0, 0.0],
                        _ if video == own && rng.chance(0.5) => near(&mut rng, *span, 6.0, 1.5),
                        _ => window(&mut rng, durations[video], 3.0, 24.0, 1.5),
                    };
                    format!("[{},{start:?},{end:?},{score:?}]", FIRST_INDEX + video)
                }));
                let comma = if query > 0 { "," } else { "" };
                write!(out, r#"{comma}{{"desc_id":{query},"desc":"thing {query}","predictions":{ranked}}}"#)?;
            }
            write!(out, "]")?;
        }
        write!(out, "}}")
    })?;
    Ok(files)
}

/// QVHighlights' validation split: 1,550 queries with one to three windows and three people's clip ratings, and ten
/// predicted windows and 75 saliency scores for each.
pub(crate) fn qvhighlights(folder: &Path) -> Result<Inputs> {
    const QUERIES: usize = 1_550;
    const CLIPS: usize = 75;
    let files = Inputs { truth: folder.join("qvh-truth.jsonl"), predictions: folder.join("qvh-predictions.jsonl") };
    let mut rng = Rng::stream(SEED, "qvhighlights truth");
    // One window per third of the video, so that windows of one query do not touch.
    let truth: Vec<Vec<Window>> = (0..QUERIES)
        .map(|query| {
            let thirds = (0..=query % 3).map(|third| {
                let longest = if third == 0 { 46.0 } else { 20.0 };
                window(&mut rng, 48.0, 2.0, longest, 2.0).map(|second| second + 50.0 * third as f64)
            });
            thirds.collect()
        })
        .collect();
    make(&files.truth, |out| {
        let mut rng = Rng::stream(SEED, "qvhighlights ratings");
        for (query, windows) in truth.iter().enumerate() {
            let clips: Vec<usize> =
                windows.iter().flat_map(|[start, end]| (*start / 2.0) as usize..(*end / 2.0) as usize).collect();
            let ratings = array(clips.iter().map(|_| array((0..3).map(|_| rng.below(5).to_string()))));
            let clips = array(clips.iter().map(ToString::to_string));
            let windows = array(windows.iter().map(|[start, end]| format!("[{start:.0}, {end:.0}]")));
            write!(out, r#"{{"qid": {query}, "query": "Somebody does thing {query}", "duration": 150, "#)?;
            write!(out, r#""vid": "video{query}_0.0_150.0", "relevant_windows": {windows}, "#)?;
            writeln!(out, r#""relevant_clip_ids": {clips}, "saliency_scores": {ratings}}}"#)?;
        }
        Ok(())
    })?;
    make(&files.predictions, |out| {
        let mut rng = Rng::stream(SEED, "qvhighlights predictions");
        for (query, windows) in truth.iter().enumerate() {
            let ranked = array((0..10).map(|rank| {
                let score = 1.0 - f64::from(rank) * 0.09 - rng.between(0.0, 0.05);
                let [start, end] = match rng.pick(windows) {
                    Some(true_window) if rng.chance(0.5) => near(&mut rng, *true_window, 6.0, 2.0),
                    _ => window(&mut rng, 150.0, 2.0, 80.0, 2.0),
                };
                format!("[{start:?}, {end:?}, {score:.4}]")
            }));
            let saliency = array((0..CLIPS).map(|_| format!("{:.4}", rng.normal())));
            write!(out, r#"{{"qid": {query}, "query": "thing {query}", "vid": "video{query}_0.0_150.0", "#)?;
            writeln!(out, r#""pred_relevant_windows": {ranked}, "pred_saliency_scores": {saliency}}}"#)?;
        }
        Ok(())
    })?;
    Ok(files)
}

/// Ranked retrieval: 500 queries with 27 graded moments and 100 predictions each, and the index of 19,614 videos that
/// gives its numbers a meaning.
pub(crate) fn ranked(folder: &Path) -> Result<(Inputs, PathBuf)> {
    const VIDEOS: usize = 19_614;
    const QUERIES: usize = 500;
    const MOMENTS: usize = 27;
    let files = Inputs { truth: folder.join("ranked-truth.json"), predictions: folder.join("ranked-predictions.json") };
    let index = folder.join("ranked-videos.json");
    let mut rng = Rng::stream(SEED, "ranked truth");
    let truth: Vec<Vec<(usize, Window)>> = (0..QUERIES)
        .map(|_| (0..MOMENTS).map(|_| (rng.below(VIDEOS), window(&mut rng, 60.0, 2.0, 18.0, 0.01))).collect())
        .collect();
    let name = |video: usize| format!("show_s01e01_seg02_clip_{video:05}");
    make(&index, |out| {
        let entries: Vec<String> = (0..VIDEOS).map(|video| format!(r#""{}": [60.0, {video}]"#, name(video))).collect();
        write!(out, "{{{}}}", entries.join(", "))
    })?;
    make(&files.truth, |out| {
        let mut rng = Rng::stream(SEED, "ranked grades");
        let records = truth.iter().enumerate().flat_map(|(query, moments)| {
            moments
                .iter()
                .enumerate()
                .map(move |(place, (video, span))| (query, query * MOMENTS + place, *video, *span))
        });
        let records = records.map(|(query, pair, video, [start, end])| {
            let (name, grade) = (name(video), rng.below(5));
            format!(
                r#"{{"pair_id": {pair}, "query_id": {query}, "query": "thing {query}", "video_name": "{name}", "timestamp": [{start:.2}, {end:.2}], "duration": 60.0, "caption": "", "similarity": 0.5, "relevance": {grade}}}"#
            )
        });
        write!(out, "{}", array(records))
    })?;
    make(&files.predictions, |out| {
        let mut rng = Rng::stream(SEED, "ranked predictions");
        let entries = truth.iter().enumerate().map(|(query, moments)| {
            let ranked = array((0..100).map(|rank| {
                let score = 50.0 - f64::from(rank) / 4.0;
                let (video, [start, end]) = match rng.pick(moments) {
                    Some((video, span)) if rng.chance(0.3) => (*video, near(&mut rng, *span, 4.0, 1.5)),
                    _ => (rng.below(VIDEOS), window(&mut rng, 60.0, 3.0, 24.0, 1.5)),
                };
                format!("[{video}, {start:?}, {end:?}, {score:?}]")
            }));
            format!(r#"{{"query_id": {query}, "desc": "thing {query}", "predictions": {ranked}}}"#)
        });
        write!(out, "{}", array(entries))
    })?;
    Ok((files, index))
}

/// Our own layout: `queries` queries, five to a video, ten predictions each.
pub(crate) fn plain(folder: &Path, queries: usize) -> Result<Inputs> {
    const DURATION: f64 = 120.0;
    let file = |what: &str| folder.join(format!("plain-{queries}-{what}.jsonl"));
    let files = Inputs { truth: file("truth"), predictions: file("predictions") };
    // Both files draw the same moments, so that neither has to be held in memory.
    let moments = || {
        let mut rng = Rng::stream(SEED, "plain truth");
        (0..queries).map(move |query| (query, query / 5, window(&mut rng, DURATION, 2.0, 60.0, 0.01)))
    };
    make(&files.truth, |out| {
        for (query, video, [start, end]) in moments() {
            write!(out, r#"{{"qid":"{query}","query":"somebody does thing {query}","video":"v{video}","#)?;
            writeln!(out, r#""duration":{DURATION:?},"spans":[[{start:.2},{end:.2}]]}}"#)?;
        }
        Ok(())
    })?;
    make(&files.predictions, |out| {
        let mut rng = Rng::stream(SEED, "plain predictions");
        for (query, video, span) in moments() {
            let ranked = array((0..10).map(|rank| {
                let [start, end] = match rng.chance(0.5) {
                    true => near(&mut rng, span, 15.0, 0.01),
                    false => window(&mut rng, DURATION, 2.0, 60.0, 0.01),
                };
                let score = 1.0 - f64::from(rank) / 10.0;
                format!(r#"{{"video":"v{video}","span":[{start:.2},{end:.2}],"score":{score:.2}}}"#)
            }));
            writeln!(out, r#"{{"qid":"{query}","predictions":{ranked}}}"#)?;
        }
        Ok(())
    })?;
    Ok(files)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn windows_lie_on_the_grid_and_have_a_length() {
        let mut rng = Rng::new(1);
        for _ in 0..1_000 {
            let [start, end] = window(&mut rng, 60.0, 2.0, 18.0, 1.5);
            assert!(start >= 0.0 && end > start && end <= 61.5, "{start} {end}");
            assert_eq!((start % 1.5, end % 1.5), (0.0, 0.0));
            let [start, end] = near(&mut rng, [start, end], 6.0, 1.5);
            assert!(start >= 0.0 && end > start, "{start} {end}");
        }
    }

    #[test]
    fn one_seed_makes_one_file_and_it_is_json() {
        let (once, again) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
        let read = |path: &Path| std::fs::read_to_string(path).unwrap();
        let (first, second) = (plain(once.path(), 50).unwrap(), plain(again.path(), 50).unwrap());
        assert_eq!(read(&first.truth), read(&second.truth));
        assert_eq!(read(&first.predictions), read(&second.predictions));
        let predictions: Vec<serde_json::Value> =
            read(&first.predictions).lines().map(|line| serde_json::from_str(line).unwrap()).collect();
        assert_eq!(predictions.len(), 50);
        assert!(predictions.iter().all(|line| line["predictions"].as_array().unwrap().len() == 10));
    }

    #[test]
    fn highlight_windows_agree_with_their_clips() {
        let folder = tempfile::tempdir().unwrap();
        let files = qvhighlights(folder.path()).unwrap();
        let text = std::fs::read_to_string(files.truth).unwrap();
        assert_eq!(text.lines().count(), 1_550);
        for line in text.lines() {
            let query: serde_json::Value = serde_json::from_str(line).unwrap();
            let windows = query["relevant_windows"].as_array().unwrap();
            let seconds: f64 = windows.iter().map(|w| w[1].as_f64().unwrap() - w[0].as_f64().unwrap()).sum();
            let clips = query["relevant_clip_ids"].as_array().unwrap();
            assert_eq!(clips.len() as f64 * 2.0, seconds);
            assert_eq!(clips.len(), query["saliency_scores"].as_array().unwrap().len());
            assert!(clips.iter().all(|clip| clip.as_u64().unwrap() < 75));
        }
    }
}

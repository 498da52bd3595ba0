//! What the tests of this crate share.

use std::collections::BTreeMap;

use cuemark_core::{Query, QueryId, Span, Truth, Video, VideoId};
use cuemark_formats::Source;
use serde::Deserialize;

/// A query about one moment, times in seconds.
pub(crate) fn truth(id: &str, text: &str, video: &str, duration: f64, start: f64, end: f64) -> Truth {
    let query = Query { id: QueryId::new(id), text: text.to_owned() };
    Truth::single(query, Video::new(VideoId::new(video), duration), [Span::new(start, end).unwrap()])
}

#[derive(Deserialize)]
struct Annotated {
    timestamps: Vec<[f64; 2]>,
    sentences: Vec<String>,
    video_duration: f64,
}

/// The four published splits of Charades-CD by our names for them; `None` where they are not at hand.
pub(crate) fn charades_cd() -> Option<BTreeMap<&'static str, Vec<Truth>>> {
    let folder = cuemark_testkit::shared("data/charades-cd")?;
    let files = [("train", "train"), ("val", "val"), ("test-iid", "test_iid"), ("test-ood", "test_ood")];
    let read = |file: &str| -> Vec<Truth> {
        let source = Source::find(&folder, &format!("charades_{file}.json")).unwrap();
        let videos: serde_json::Map<String, serde_json::Value> = serde_json::from_str(&source.text().unwrap()).unwrap();
        let videos = videos.into_iter().map(|(id, value)| (id, serde_json::from_value::<Annotated>(value).unwrap()));
        let truths = videos.flat_map(|(id, video)| {
            let moments = video.timestamps.into_iter().zip(video.sentences);
            let moments = moments.map(move |([start, end], text)| {
                truth("", &text, &id, video.video_duration, start.min(end), start.max(end))
            });
            moments.collect::<Vec<_>>()
        });
        let mut truths: Vec<Truth> = truths.collect();
        for (n, truth) in truths.iter_mut().enumerate() {
            truth.query.id = QueryId::new(format!("charades_{file}:{n}"));
        }
        truths
    };
    Some(files.into_iter().map(|(name, file)| (name, read(file))).collect())
}

/// Two moments in each of `videos` videos of ten seconds: early, except in every tenth video, where they come late.
pub(crate) fn habits(videos: usize) -> Vec<Truth> {
    let mut rng = cuemark_core::Rng::new(0);
    let mut truths = Vec::new();
    for video in 0..videos {
        for n in 0..2 {
            let usual = video % 10 != 9;
            let start = if usual { rng.between(0.5, 1.5) } else { rng.between(4.0, 8.0) };
            let (verb, length) = if n == 0 { ("opens", 2.0) } else { ("closes", 1.5) };
            let text = format!("someone {verb} a box");
            truths.push(truth(&format!("{video}-{n}"), &text, &format!("v{video}"), 10.0, start, start + length));
        }
    }
    truths
}

//! Made-up prediction files in the sizes of real ones.

use std::fmt::Write as _;

use cuemark_core::Rng;

/// A TVR submission: `queries` × three tasks × 100 predictions among the 2 179 videos of the validation split, on one line.
pub(super) fn tvr(queries: usize) -> String {
    const FIRST: usize = 19_614;
    const VIDEOS: usize = 2_179;
    let mut rng = Rng::new(1);
    let mut text = String::from("{\"video2idx\":{");
    for number in 0..VIDEOS {
        let comma = if number == 0 { "" } else { "," };
        write!(text, "{comma}\"show_s{:02}e{:02}_seg02_clip_{number:04}\":{}", number % 9, number % 24, FIRST + number)
            .unwrap();
    }
    text.push('}');
    for task in ["VCMR", "SVMR", "VR"] {
        write!(text, ",\"{task}\":[").unwrap();
        for query in 0..queries {
            let comma = if query == 0 { "" } else { "," };
            write!(text, "{comma}{{\"desc_id\":{query},\"desc\":\"somebody does something {query}\",\"predictions\":[")
                .unwrap();
            for rank in 0..100 {
                let comma = if rank == 0 { "" } else { "," };
                let (video, start) = (rng.below(VIDEOS), rng.below(60) as f64 * 1.5);
                let (start, end) =
                    if task == "VR" { (0.0, 0.0) } else { (start, start + 1.5 * (1 + rng.below(8)) as f64) };
                write!(text, "{comma}[{},{start:?},{end:?},{:.1}]", FIRST + video, 20.0 - f64::from(rank) / 10.0)
                    .unwrap();
            }
            text.push_str("]}");
        }
        text.push(']');
    }
    text.push('}');
    text
}

/// Our JSON Lines: `queries` × 10 predictions among `queries / 5` videos, one video a query.
pub(super) fn cuemark(queries: usize) -> impl Iterator<Item = String> {
    let mut rng = Rng::new(2);
    (0..queries).map(move |query| {
        let mut line = format!("{{\"qid\":\"{query}\",\"predictions\":[");
        for rank in 0..10 {
            let comma = if rank == 0 { "" } else { "," };
            let start = (rng.uniform() * 10_000.0).round() / 100.0;
            let end = ((start + rng.uniform() * 30.0) * 100.0).round() / 100.0;
            let score = (rng.uniform() * 10_000.0).round() / 10_000.0;
            let video = query / 5;
            write!(line, "{comma}{{\"video\":\"v{video:08}\",\"span\":[{start:?},{end:?}],\"score\":{score:?}}}")
                .unwrap();
        }
        line.push_str("]}\n");
        line
    })
}

/// A QVHighlights submission: `queries` × 10 windows and 75 saliency scores.
pub(super) fn qvhighlights(queries: usize) -> String {
    let mut rng = Rng::new(3);
    let mut text = String::new();
    for query in 0..queries {
        write!(
            text,
            "{{\"qid\":{query},\"query\":\"somebody does something {query}\",\"vid\":\"video{query}_60.0_210.0\","
        )
        .unwrap();
        text.push_str("\"pred_relevant_windows\":[");
        for rank in 0..10 {
            let comma = if rank == 0 { "" } else { "," };
            let start = rng.below(60) as f64 * 2.0;
            let end = start + 2.0 * (1 + rng.below(15)) as f64;
            write!(text, "{comma}[{start:?}, {end:?}, {:.4}]", rng.uniform()).unwrap();
        }
        text.push_str("],\"pred_saliency_scores\":[");
        for clip in 0..75 {
            let comma = if clip == 0 { "" } else { "," };
            write!(text, "{comma}{:?}", rng.normal() as f32).unwrap();
        }
        text.push_str("]}\n");
    }
    text
}

//! How alike queries and the videos of their pools are: the figures behind a picture, and the picture.

use std::collections::HashMap;

use cuemark_chart::{Axis, Frame, Room, Series, Style, drawn, picture, short};
use cuemark_core::{QueryId, Truth, VideoId};
use cuemark_text::similarity::{Histogram, Scale, Similarity};
use maud::{Markup, html};
use serde::Serialize;

use super::Thresholds;
use super::collection::{Collection, check_sides};
use crate::Result;

/// Similarities of queries with videos, in three groups; the queries' own videos are left out.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Audit {
    /// Whose similarities.
    pub provider: String,
    /// Every query with every other video.
    pub all: Histogram,
    /// Queries with the positive videos of their pools.
    pub positives: Histogram,
    /// Queries with the negative videos of their pools.
    pub negatives: Histogram,
}

/// Counts similarities of `queries`, whose pools are `pools`; queries without a pool count in the first group only.
///
/// # Errors
/// When a query names no single video or similarities are of other things.
pub fn audit(queries: &[Truth], pools: &[Truth], between_queries: &dyn Similarity, scale: Scale) -> Result<Audit> {
    let collection = Collection::new(queries)?;
    check_sides(between_queries, queries.len(), queries.len())?;
    let pools: HashMap<&QueryId, &Truth> = pools.iter().map(|truth| (&truth.query.id, truth)).collect();
    let places: HashMap<&VideoId, usize> =
        collection.videos().iter().enumerate().map(|(place, id)| (id, place)).collect();
    let nothing = || [(); 3].map(|()| Histogram::empty(scale));
    let blocks =
        collection.likenesses(between_queries, nothing, |[all, positives, negatives], query, likenesses| {
            let own = collection.video_of(query);
            let others = likenesses.iter().enumerate().filter(|(place, _)| *place != own);
            others.for_each(|(_, like)| all.count(like.similarity));
            let Some(truth) = pools.get(&queries[query].query.id) else { return Ok(()) };
            let members = truth.pool.iter().flatten().filter_map(|id| Some((id, *places.get(id)?)));
            for (id, place) in members.filter(|(_, place)| *place != own) {
                let positive = truth.right().any(|moment| moment.video == *id);
                let group = if positive { &mut *positives } else { &mut *negatives };
                group.count(likenesses[place].similarity);
            }
            Ok(())
        })?;
    let add = |[a, b, c]: [Histogram; 3], [x, y, z]: &[Histogram; 3]| [a.joined(x), b.joined(y), c.joined(z)];
    let [all, positives, negatives] = blocks.iter().fold(nothing(), add);
    Ok(Audit { provider: between_queries.name().to_owned(), all, positives, negatives })
}

impl Audit {
    /// The picture as SVG: the share of each group in each bin, with the thresholds as vertical lines.
    pub fn draw(&self, thresholds: Thresholds) -> String {
        let groups = [
            ("all other videos", &self.all),
            ("positive in the pool", &self.positives),
            ("negative in the pool", &self.negatives),
        ];
        let share = |group: &Histogram, bin: usize| group.counts[bin] as f64 / group.total().max(1) as f64;
        let bins = self.all.counts.len();
        let highest = groups.iter().flat_map(|(_, group)| (0..bins).map(|bin| share(group, bin))).fold(0.01, f64::max);
        let scale = self.all.scale;
        let likeness = "similarity of the likest query of the video";
        let x = Axis::even(f64::from(scale.low), f64::from(scale.high), likeness, |at| format!("{at:.1}"));
        let y = Axis::even(0.0, highest * 1.08, "share of the group", |at| format!("{at:.2}"));
        let frame = Frame { corner: (0.0, 0.0), size: SIZE, room: ROOM, x: &x, y: &y };
        let staircase = |group: &Histogram| -> Vec<(f64, f64)> {
            let step = |bin: usize| [bin, bin + 1].map(|edge| (f64::from(scale.edge(edge)), share(group, bin)));
            (0..bins).flat_map(step).collect()
        };
        let series = groups.iter().enumerate().map(|(number, (_, group))| Series {
            class: format!("c{number}"),
            points: staircase(group),
            bars: Vec::new(),
            style: Style::Line,
        });
        let lines = [thresholds.negative, thresholds.positive].map(|at| Series {
            class: "ink".to_owned(),
            points: vec![(f64::from(at), 0.0), (f64::from(at), y.range.1)],
            bars: Vec::new(),
            style: Style::Dashed,
        });
        let content = html! {
            text class="heading" x=(short(frame.left())) y="26" { "Similarity of queries and videos (" (self.provider) ")" }
            (frame.axes())
            @for one in series.chain(lines) { (drawn(&one, &frame)) }
            @for (number, (name, group)) in groups.iter().enumerate() { (legend(&frame, number, name, group)) }
        };
        picture("how alike queries and the videos of their pools are", SIZE, &content)
    }
}

/// Extents of the picture.
const SIZE: (f64, f64) = (760.0, 420.0);
const ROOM: Room = Room { left: 62.0, top: 42.0, right: 16.0, bottom: 44.0 };

/// One line of the legend, in the upper right corner.
fn legend(frame: &Frame<'_>, number: usize, name: &str, group: &Histogram) -> Markup {
    let (left, y) = (frame.right() - 230.0, frame.top() + 14.0 + 18.0 * number as f64);
    html! {
        g class=(format!("c{number}")) { line class="line" x1=(short(left)) x2=(short(left + 18.0)) y1=(short(y)) y2=(short(y)) {} }
        text x=(short(left + 24.0)) y=(short(y + 4.0)) { (name) " (" (group.total()) ")" }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use cuemark_core::{GradedMoment, Query, Span, Video};
    use cuemark_text::similarity::Matrix;

    fn query(id: &str, video: &str) -> Truth {
        let query = Query { id: id.into(), text: String::new() };
        Truth::single(query, Video::new(video, 9.0), [Span::whole(1.0)])
    }

    #[test]
    fn each_group_counts_its_own_pairs() {
        let queries = [query("0", "a"), query("1", "b"), query("2", "c")];
        let values = vec![1.0, 0.95, 0.15, 0.95, 1.0, 0.35, 0.15, 0.35, 1.0];
        let matrix = Matrix::new("known", 3, values).unwrap();
        let mut pooled = queries[0].clone();
        pooled.moments.push(GradedMoment::right("b".into(), Span::whole(1.0)));
        pooled.pool = Some(["a", "b", "c"].map(Into::into).to_vec());
        let audit = audit(&queries, &[pooled], &matrix, Scale::unit(10)).unwrap();
        assert_eq!(audit.all.counts, [0, 2, 0, 2, 0, 0, 0, 0, 0, 2]);
        assert_eq!(audit.positives.counts, [0, 0, 0, 0, 0, 0, 0, 0, 0, 1]);
        assert_eq!(audit.negatives.counts, [0, 1, 0, 0, 0, 0, 0, 0, 0, 0]);
        let svg = audit.draw(Thresholds::SIMCSE);
        assert!(svg.starts_with("<svg") && svg.contains("positive in the pool (1)"));
    }
}

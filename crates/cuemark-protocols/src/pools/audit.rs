//! How alike queries and the videos of their pools are: the figures behind a picture, and the picture.

use std::collections::HashMap;

use cuemark_core::{QueryId, Truth, VideoId};
use cuemark_text::similarity::{Histogram, Scale, Similarity};
use plotters::prelude::*;
use serde::Serialize;

use super::Thresholds;
use super::collection::{Collection, check_sides};
use crate::{ProtocolError, Result};

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
    ///
    /// # Errors
    /// When the drawing library cannot draw it.
    pub fn draw(&self, thresholds: Thresholds) -> Result<String> {
        let mut svg = String::new();
        self.draw_into(&mut svg, thresholds).map_err(|error| ProtocolError::Plot {
            path: "pool similarities".to_owned(),
            problem: error.to_string(),
        })?;
        Ok(svg)
    }

    fn draw_into(&self, svg: &mut String, thresholds: Thresholds) -> Result<(), Box<dyn std::error::Error>> {
        let groups = [
            ("all other videos", &self.all, RGBColor(120, 120, 120)),
            ("positive in the pool", &self.positives, RGBColor(0, 114, 178)),
            ("negative in the pool", &self.negatives, RGBColor(213, 94, 0)),
        ];
        let share = |group: &Histogram, bin: usize| group.counts[bin] as f64 / group.total().max(1) as f64;
        let bins = self.all.counts.len();
        let highest =
            groups.iter().flat_map(|(_, group, _)| (0..bins).map(|bin| share(group, bin))).fold(0.01, f64::max);
        let root = SVGBackend::with_string(svg, (760, 420)).into_drawing_area();
        root.fill(&WHITE)?;
        let scale = self.all.scale;
        let mut chart = ChartBuilder::on(&root)
            .margin(12)
            .caption(format!("Similarity of queries and videos ({})", self.provider), ("sans-serif", 18))
            .x_label_area_size(40)
            .y_label_area_size(56)
            .build_cartesian_2d(f64::from(scale.low)..f64::from(scale.high), 0.0..highest * 1.08)?;
        chart
            .configure_mesh()
            .x_desc("similarity of the likest query of the video")
            .y_desc("share of the group")
            .light_line_style(TRANSPARENT)
            .draw()?;
        for (name, group, colour) in groups {
            // A staircase: two points per bin.
            let steps = (0..bins).flat_map(|bin| {
                let height = share(group, bin);
                [bin, bin + 1].map(|edge| (f64::from(scale.edge(edge)), height))
            });
            chart
                .draw_series(LineSeries::new(steps, colour.stroke_width(2)))?
                .label(format!("{name} ({})", group.total()))
                .legend(move |(x, y)| PathElement::new([(x, y), (x + 18, y)], colour.stroke_width(2)));
        }
        for threshold in [thresholds.negative, thresholds.positive].map(f64::from) {
            let line = [(threshold, 0.0), (threshold, highest * 1.08)];
            chart.draw_series(DashedLineSeries::new(line, 4, 4, BLACK.stroke_width(1)))?;
        }
        chart
            .configure_series_labels()
            .position(SeriesLabelPosition::UpperRight)
            .background_style(WHITE.mix(0.85))
            .border_style(RGBColor(200, 200, 200))
            .draw()?;
        root.present()?;
        Ok(())
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
        let svg = audit.draw(Thresholds::SIMCSE).unwrap();
        assert!(svg.starts_with("<svg") && svg.contains("positive in the pool (1)"));
    }
}

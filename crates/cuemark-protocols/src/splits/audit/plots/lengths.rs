//! How long moments are, as a share of their video.

use cuemark_core::NormSpan;
use plotters::prelude::*;

use super::{Drawn, text};

/// Bars in each histogram.
const BARS: usize = 40;

/// One histogram for each panel, side by side on one scale.
pub(super) fn draw(svg: &mut String, panels: &[(String, Vec<NormSpan>)]) -> Drawn {
    let histograms: Vec<Vec<f64>> = panels.iter().map(|(_, spans)| histogram(spans)).collect();
    let tallest = histograms.iter().flatten().copied().fold(0.01, f64::max);
    let columns = panels.len().clamp(1, 4);
    let rows = panels.len().div_ceil(columns).max(1);
    let root = SVGBackend::with_string(svg, (400 * columns as u32, 300 * rows as u32)).into_drawing_area();
    root.fill(&WHITE).map_err(text)?;
    for (((name, spans), shares), area) in panels.iter().zip(&histograms).zip(root.split_evenly((rows, columns))) {
        let mut chart = ChartBuilder::on(&area)
            .caption(format!("{name}: {} moments", spans.len()), ("sans-serif", 17))
            .margin(8)
            .x_label_area_size(36)
            .y_label_area_size(50)
            .build_cartesian_2d(0.0..1.0, 0.0..100.0 * tallest * 1.05)
            .map_err(text)?;
        chart
            .configure_mesh()
            .disable_x_mesh()
            .light_line_style(TRANSPARENT)
            .x_labels(6)
            .y_labels(6)
            .x_desc("length (share of the video)")
            .y_desc("moments (%)")
            .label_style(("sans-serif", 12))
            .axis_desc_style(("sans-serif", 13))
            .draw()
            .map_err(text)?;
        let step = 1.0 / BARS as f64;
        let bars = shares.iter().enumerate().map(|(bar, share)| {
            let left = bar as f64 * step;
            Rectangle::new([(left, 0.0), (left + 0.92 * step, 100.0 * share)], RGBColor(34, 94, 168).filled())
        });
        chart.draw_series(bars).map_err(text)?;
    }
    root.present().map_err(text)
}

/// The share of `spans` in each class of lengths; a length of exactly 1 belongs to the last.
fn histogram(spans: &[NormSpan]) -> Vec<f64> {
    let mut shares = vec![0.0; BARS];
    for span in spans {
        shares[((span.len() * BARS as f64) as usize).min(BARS - 1)] += 1.0 / spans.len() as f64;
    }
    shares
}

//! One query on one strip: the truth and every first answer along the video.

use maud::{Markup, html};

use super::super::examples::Example;
use super::chart::{colour, short};
use super::text::{percent, short as shortened};

/// Width of the strip, room for names before it and for overlaps behind it.
const STRIP: f64 = 460.0;
const BEFORE: f64 = 150.0;
const BEHIND: f64 = 46.0;
/// Height of one lane.
const LANE: f64 = 17.0;

pub(super) fn timeline(example: &Example) -> Markup {
    let lanes = example.answers.len() as f64 + 1.0;
    let height = lanes * LANE + 20.0;
    let seconds = example.duration.max(f64::MIN_POSITIVE);
    let across = |second: f64| BEFORE + STRIP * (second / seconds).clamp(0.0, 1.0);
    let bar = |[start, end]: [f64; 2], lane: f64, class: String| {
        let (left, right) = (across(start), across(end));
        html! { rect class=(class) x=(short(left)) y=(short(lane * LANE + 3.0)) width=(short((right - left).max(1.5))) height=(LANE - 6.0) rx="2" {} }
    };
    let named: Vec<String> =
        example.answers.iter().map(|answer| format!("{} {}", answer.label, percent(answer.iou))).collect();
    let label = format!(
        "the truth and first answers along {:.0} seconds; overlaps in percent: {}",
        example.duration,
        named.join(", ")
    );
    let width = BEFORE + STRIP + BEHIND;
    html! {
        figure class="example" {
            figcaption {
                q { (shortened(&example.text, 240)) }
                " " span class="quiet" { (shortened(&example.video, 60)) ", query " (shortened(&example.query, 40)) }
            }
            svg viewBox=(format!("0 0 {width} {height}")) role="img" aria-label=(shortened(&label, 400)) {
                @for n in 0..=4 {
                    @let at = f64::from(n) / 4.0;
                    line class="grid" x1=(short(BEFORE + STRIP * at)) x2=(short(BEFORE + STRIP * at)) y1="0" y2=(short(lanes * LANE)) {}
                    text class=(if n == 4 { "tick end" } else { "tick middle" }) x=(short(BEFORE + STRIP * at)) y=(short(lanes * LANE + 13.0)) {
                        (short(example.duration * at)) @if n == 4 { " s" }
                    }
                }
                text class="lane strong" x=(BEFORE - 8.0) y=(LANE - 4.5) { "truth" }
                @for span in &example.truth { (bar(*span, 0.0, "true".to_owned())) }
                @for (n, answer) in example.answers.iter().enumerate() {
                    @let lane = n as f64 + 1.0;
                    text class="lane" x=(BEFORE - 8.0) y=(short((lane + 1.0) * LANE - 4.5)) { (shortened(&answer.label, 22)) }
                    @if let Some(span) = answer.span { (bar(span, lane, format!("answer {}", colour(n)))) }
                    text class="tick" x=(BEFORE + STRIP + 8.0) y=(short((lane + 1.0) * LANE - 4.5)) { (percent(answer.iou)) }
                }
            }
        }
    }
}

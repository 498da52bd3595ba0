//! One query on one strip: the truth and every first answer along the video.

use maud::{Markup, html};

use super::super::examples::Example;
use super::chart::{Palette, short};
use super::text::{percent, short as shortened};

/// Width of the strip, room for names before it and for overlaps behind it.
const STRIP: f64 = 320.0;
const BEFORE: f64 = 124.0;
const BEHIND: f64 = 40.0;
/// Height of one lane.
const LANE: f64 = 17.0;
/// Height of the saliency curves under the lanes, and the gap above them.
const CURVES: f64 = 44.0;
const ABOVE_CURVES: f64 = 22.0;
/// The best grade that a rater can give.
const BEST: f64 = 4.0;

pub(super) fn timeline(example: &Example, palette: &Palette) -> Markup {
    let lanes = example.answers.len() as f64 + 1.0;
    let curved = !example.ratings.is_empty() || example.answers.iter().any(|answer| !answer.saliency.is_empty());
    let height = lanes * LANE + 20.0 + if curved { CURVES + ABOVE_CURVES - 14.0 } else { 0.0 };
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
        figure class="example" data-film=[example.film.as_ref().map(|_| "")] {
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
                    text class="lane" x=(BEFORE - 8.0) y=(short((lane + 1.0) * LANE - 4.5)) { (shortened(&answer.label, 18)) }
                    @if let Some(span) = answer.span { (bar(span, lane, format!("answer {}", palette.of(&answer.label)))) }
                    text class="tick" x=(BEFORE + STRIP + 8.0) y=(short((lane + 1.0) * LANE - 4.5)) { (percent(answer.iou)) }
                }
                @if curved { (saliency(example, palette, lanes * LANE + ABOVE_CURVES)) }
            }
            @if let Some(film) = &example.film { (player(example, film)) }
        }
    }
}

/// What raters and methods think of each clip: the mean grade as steps, the methods' scores as lines from their lowest to their highest.
fn saliency(example: &Example, palette: &Palette, top: f64) -> Markup {
    let bottom = top + CURVES;
    let up = |share: f64| bottom - CURVES * share.clamp(0.0, 1.0);
    let along = |place: f64, count: usize| BEFORE + STRIP * place / count.max(1) as f64;
    let steps: String = example.ratings.iter().enumerate().fold(String::new(), |path, (clip, grade)| {
        let (left, right) =
            (along(clip as f64, example.ratings.len()), along(clip as f64 + 1.0, example.ratings.len()));
        let height = short(up(grade / BEST));
        format!("{path}{},{height} {},{height} ", short(left), short(right))
    });
    let line = |scores: &[f64]| {
        let point = |(clip, score): (usize, &f64)| {
            format!("{},{}", short(along(clip as f64 + 0.5, scores.len())), short(up(*score)))
        };
        scores.iter().enumerate().map(point).collect::<Vec<_>>().join(" ")
    };
    html! {
        g class="saliency" {
            text class="lane strong" x=(BEFORE - 8.0) y=(short(top + CURVES / 2.0 + 4.0)) { "saliency" }
            line class="axis" x1=(BEFORE) x2=(BEFORE + STRIP) y1=(short(bottom)) y2=(short(bottom)) {}
            @if !steps.is_empty() {
                polygon class="rated" points=(format!("{},{} {steps}{},{}", short(BEFORE), short(bottom), short(BEFORE + STRIP), short(bottom))) {}
            }
            @for answer in example.answers.iter().filter(|answer| !answer.saliency.is_empty()) {
                g class=(palette.of(&answer.label)) { polyline class="line thin" points=(line(&answer.saliency.scaled())) {} }
            }
        }
    }
}

/// The film from the truth's first second, and a button for every span. Without the script the film still starts there.
fn player(example: &Example, film: &str) -> Markup {
    let first = example.truth.first().copied().unwrap_or([0.0, example.duration]);
    let button = |label: &str, [start, end]: [f64; 2]| {
        html! {
            button type="button" data-from=(short(start)) data-to=(short(end)) {
                "▶ " (shortened(label, 24)) " " span class="quiet" { (short(start)) "–" (short(end)) " s" }
            }
        }
    };
    html! {
        video controls preload="metadata" src=(format!("{film}#t={},{}", short(first[0]), short(first[1]))) {}
        div class="spans" {
            @for span in &example.truth { (button("truth", *span)) }
            @for answer in &example.answers { @if let Some(span) = answer.span { (button(&answer.label, span)) } }
        }
    }
}

//! The sections of the page that figures stand in.

use maud::{Markup, html};

use super::super::board::Board;
use super::super::breakdown::Breakdown;
use super::super::curves::thresholds;
use super::super::training_log::TrainingLog;
use super::chart::{Axis, Palette, Series, Style, chart, legend};
use super::text::{counted, percent, short, thousands};
use super::{heat_map, table, timeline};

/// Trainings whose curves the page shows.
const TRAININGS: usize = 12;
/// Breakdowns that are drawn; those with classes of words stand in `report.json`.
const DRAWN: [&str; 4] = ["length", "position", "words", "type"];

/// One place: its table, then its figures.
pub(super) fn board(board: &Board, palette: &Palette) -> Markup {
    html! {
        (table::scores(&board.table))
        @if board.left_out > 0 {
            p class="quiet" { "Figures show the best by " (board.metric) "; " (counted(board.left_out, "method is", "methods are")) " left out of them." }
        }
        @if !board.curves.is_empty() { (curves(board, palette)) }
        @if board.truth_map.is_some() || !board.maps.is_empty() { (maps(board)) }
        @if !board.breakdowns.is_empty() { (breakdowns(board, palette)) }
        @if !board.calibrations.is_empty() { (calibration(board, palette)) }
        @if !board.examples.is_empty() { (examples(board, palette)) }
    }
}

fn share_axis(title: &str, high: f64) -> Axis {
    Axis::even(0.0, high, title, |at| format!("{:.0}", 100.0 * at))
}

fn curves(board: &Board, palette: &Palette) -> Markup {
    let thresholds = thresholds();
    let over = |values: &[f64]| thresholds.iter().copied().zip(values.iter().copied()).collect::<Vec<_>>();
    let series = |style, values: &dyn Fn(usize) -> Vec<f64>| -> Vec<Series> {
        let one = |n: usize| Series {
            class: palette.of(&board.curves[n].label),
            points: over(&values(n)),
            bars: Vec::new(),
            style,
        };
        (0..board.curves.len()).map(one).collect()
    };
    let x = Axis::even(0.0, 1.0, "overlap that makes a hit (IoU)", |at| format!("{at:.1}"));
    let plain = series(Style::Line, &|n| board.curves[n].recall.clone());
    let timed = board.curves.iter().all(|curve| !curve.discounted.is_empty());
    let discounted = series(Style::Dashed, &|n| board.curves[n].discounted.clone());
    html! {
        h3 { "Recall over the threshold" }
        (legend(board.curves.iter().map(|curve| (palette.of(&curve.label), curve.label.as_str()))))
        div class="figures" {
            figure { (chart("R@1 of each method over the overlap that makes a hit", &x, &share_axis("R@1, percent", 1.0), &plain)) figcaption { "R@1: share of first answers that overlap the truth enough." } }
            @if timed {
                figure { (chart("dR@1 of each method over the overlap that makes a hit", &x, &share_axis("dR@1, percent", 1.0), &discounted)) figcaption { "dR@1: hits count less the further their ends are off, so that long guesses gain little at low thresholds." } }
            }
        }
    }
}

fn maps(board: &Board) -> Markup {
    let full = heat_map::full_tone(board.truth_map.as_ref(), &board.maps);
    html! {
        h3 { "Where answers lie" }
        p class="quiet" { "Start across, end up, in twentieths of the video; the stronger the tone, the more first answers. One scale for all maps: a method that looks at the video has the truth's map, one that guesses has a few strong cells." }
        div class="maps" {
            @if let Some(truth) = &board.truth_map { (heat_map::heat_map(truth, full)) }
            @for map in &board.maps { (heat_map::heat_map(map, full)) }
        }
    }
}

fn breakdowns(board: &Board, palette: &Palette) -> Markup {
    let drawn: Vec<&Breakdown> = board.breakdowns.iter().filter(|found| DRAWN.contains(&found.by)).collect();
    let names = board.breakdowns.first().map(|found| &found.entries);
    html! {
        h3 { (board.metric) " by kind of query" }
        @if let Some(names) = names { (legend(names.iter().map(|entry| (palette.of(&entry.label), entry.label.as_str())))) }
        div class="figures" { @for found in drawn { (breakdown(board, found, palette)) } }
        @for found in board.breakdowns.iter().filter(|found| found.by == "verb") { (by_verb(found)) }
    }
}

fn title_of(by: &str) -> &'static str {
    match by {
        "length" => "length of the moment, share of the video",
        "position" => "third of the video that the moment lies in",
        "words" => "words of the query",
        "type" => "kind of query, in the dataset's words",
        _ => "class",
    }
}

fn breakdown(board: &Board, found: &Breakdown, palette: &Palette) -> Markup {
    let count = found.entries.len().max(1) as f64;
    let series: Vec<Series> = found
        .entries
        .iter()
        .enumerate()
        .map(|(n, entry)| {
            // Side by side, so that intervals do not cover each other.
            let aside = 0.5 * ((n as f64 + 0.5) / count - 0.5);
            let known = || entry.values.iter().enumerate().filter_map(|(class, value)| Some((class, (*value)?)));
            Series {
                class: palette.of(&entry.label),
                points: known().map(|(class, value)| (class as f64 + aside, value.value)).collect(),
                bars: known().map(|(_, value)| (value.low, value.high)).collect(),
                style: Style::Dots,
            }
        })
        .collect();
    let names: Vec<String> =
        found.classes.iter().map(|class| short(&class.replace('-', "–"), 12).into_owned()).collect();
    let label = format!("{} by {}", board.metric, title_of(found.by));
    let sizes: Vec<String> = found.queries.iter().map(|n| thousands(*n)).collect();
    html! {
        figure {
            (chart(&label, &Axis::named(&names, title_of(found.by)), &share_axis("percent", 1.0), &series))
            figcaption { "Queries: " (sizes.join(", ")) ". Bars are 95 % intervals." }
        }
    }
}

/// Verbs as a table: there are too many names for an axis.
fn by_verb(found: &Breakdown) -> Markup {
    html! {
        details {
            summary { "By verb: the " (found.classes.len()) " most frequent" }
            div class="wide" tabindex="0" {
                table class="sortable" {
                    thead { tr {
                        th scope="col" { button type="button" { "verb" } }
                        th scope="col" { button type="button" { "queries" } }
                        @for entry in &found.entries { th scope="col" { button type="button" { (short(&entry.label, 40)) } } }
                    } }
                    tbody {
                        @for (n, class) in found.classes.iter().enumerate() {
                            tr {
                                th scope="row" { (short(class, 40)) }
                                td data-value=(found.queries[n]) { (thousands(found.queries[n])) }
                                @for entry in &found.entries {
                                    @match entry.values.get(n).copied().flatten() {
                                        Some(value) => td data-value=(format!("{:.6}", value.value)) { (percent(value.value)) span class="ci" { (percent(value.low)) "–" (percent(value.high)) } },
                                        None => td data-value="-1" { "–" },
                                    }
                                }
                            }
                        }
                    }
                }
            }
        }
    }
}

fn calibration(board: &Board, palette: &Palette) -> Markup {
    let deciles = |n: usize| 10.0 * (n as f64 + 0.5);
    let series: Vec<Series> = board
        .calibrations
        .iter()
        .map(|found| Series {
            class: palette.of(&found.label),
            points: found.bins.iter().enumerate().map(|(n, bin)| (deciles(n), bin.right)).collect(),
            bars: Vec::new(),
            style: Style::Dots,
        })
        .collect();
    let shares: Vec<_> = board.calibrations.iter().filter(|found| found.error.is_some()).collect();
    let reliable: Vec<Series> = shares
        .iter()
        .map(|found| Series {
            class: palette.of(&found.label),
            points: found.bins.iter().map(|bin| (bin.score, bin.right)).collect(),
            bars: Vec::new(),
            style: Style::Dots,
        })
        .chain([Series {
            class: "ideal".into(),
            points: vec![(0.0, 0.0), (1.0, 1.0)],
            bars: Vec::new(),
            style: Style::Dashed,
        }])
        .collect();
    let tenths = Axis::even(0.0, 100.0, "queries, from the least to the most sure, percent", |at| format!("{at:.0}"));
    let stated = Axis::even(0.0, 1.0, "confidence as stated", |at| format!("{at:.1}"));
    html! {
        h3 { "Does confidence mean anything?" }
        (legend(board.calibrations.iter().map(|found| (palette.of(&found.label), found.label.as_str()))))
        div class="figures" {
            figure {
                (chart("share of right answers by tenth of confidence", &tenths, &share_axis("right (IoU ≥ 0.5), percent", 1.0), &series))
                figcaption {
                    "A line that rises tells right from wrong. Chance that a right answer is the surer one: "
                    @for (n, found) in board.calibrations.iter().enumerate() { @if n > 0 { ", " } (short(&found.label, 40)) " " (found.auroc.map_or("–".to_owned(), percent)) }
                    "."
                }
            }
            @if !shares.is_empty() {
                figure {
                    (chart("share of right answers against the confidence stated", &stated, &share_axis("right (IoU ≥ 0.5), percent", 1.0), &reliable))
                    figcaption {
                        "On the dashed line, confidence is a probability. Mean distance from it: "
                        @for (n, found) in shares.iter().enumerate() { @if n > 0 { ", " } (short(&found.label, 40)) " " (found.error.map_or("–".to_owned(), percent)) }
                        "."
                    }
                }
            }
        }
    }
}

fn examples(board: &Board, palette: &Palette) -> Markup {
    let mut kinds = [("best", "Everybody finds these"), ("median", "The usual case"), ("worst", "Nobody finds these")];
    let films = board.examples.iter().any(|example| example.film.is_some());
    if films {
        kinds.reverse();
    }
    html! {
        h3 { "Examples" }
        p class="quiet" { "By the mean overlap of the methods shown (baselines do not vote). Numbers at the right are overlaps in percent."
            @if board.examples.iter().any(|example| !example.ratings.is_empty()) { " Saliency: the raters' mean grade of each clip as steps, the methods' scores as lines, each from its lowest to its highest." }
        }
        @if films { p class="quiet" { "Press a name to watch from that second; the film stops where the span ends. Films are linked, not copied: they play while they lie where they lay." } }
        @for (kind, title) in kinds {
            @let found: Vec<_> = board.examples.iter().filter(|example| example.kind == kind).collect();
            @if !found.is_empty() {
                h4 { (title) }
                div class="examples" { @for example in found { (timeline::timeline(example, palette)) } }
            }
        }
    }
}

/// Loss and validation score of each training.
pub(super) fn training(logs: &[TrainingLog]) -> Markup {
    html! {
        div class="figures" { @for log in logs.iter().take(TRAININGS) { (training_of(log)) } }
        @if logs.len() > TRAININGS { p class="quiet" { (thousands(logs.len() - TRAININGS)) " more trainings are not drawn." } }
    }
}

fn training_of(log: &TrainingLog) -> Markup {
    let last = log.loss.iter().chain(&log.score).map(|point| point.0).fold(1.0, f64::max);
    let steps =
        || {
            Axis::even(0.0, last, "step", |at| {
                if at >= 1000.0 { format!("{:.0}k", at / 1000.0) } else { format!("{at:.0}") }
            })
        };
    let highest = log.loss.iter().map(|point| point.1).fold(0.0, f64::max);
    let lowest = log.loss.iter().map(|point| point.1).fold(0.0, f64::min);
    let line = |class: &str, points: &[(f64, f64)], style| {
        vec![Series { class: class.to_owned(), points: points.to_vec(), bars: Vec::new(), style }]
    };
    let best = log.best.map_or(String::new(), |step| format!("; best at step {}", thousands(step as usize)));
    html! {
        @if !log.loss.is_empty() {
            figure {
                (chart(&format!("training loss of {}", short(&log.run, 60)), &steps(), &Axis::even(lowest, highest, "loss", |at| format!("{at:.3}").trim_end_matches('0').trim_end_matches('.').to_owned()), &line("c0", &log.loss, Style::Line)))
                figcaption { b { (short(&log.run, 60)) } ": training loss" }
            }
        }
        @if !log.score.is_empty() {
            figure {
                (chart(&format!("validation score of {}", short(&log.run, 60)), &steps(), &share_axis("score, percent", log.score.iter().map(|point| point.1).fold(0.05, f64::max)), &line("c2", &log.score, Style::Dots)))
                figcaption { b { (short(&log.run, 60)) } ": score on " (short(&log.split, 40)) (best) }
            }
        }
    }
}

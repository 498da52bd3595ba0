//! Trust cards, and the overview that puts them side by side.

use maud::{Markup, html};

use super::super::about::Answerer;
use super::super::trust::{Check, TrustCard, TrustVerdict};
use super::bars;
use super::table::{Column, sortable};
use super::text::{counted, percent, points, short, thousands};

/// Cards on the page; a matrix of hundreds keeps the rest in its table and in `report.json`.
const CARDS: usize = 60;

/// Every check of every card in one table.
pub(super) fn overview(cards: &[TrustCard]) -> Markup {
    let mut names: Vec<&str> = Vec::new();
    for check in cards.iter().flat_map(|card| &card.checks).filter(|check| check.found.is_some()) {
        if !names.contains(&check.name) {
            names.push(check.name);
        }
    }
    let places: Vec<String> = cards.iter().map(|card| card.place.title()).collect();
    let several = places.iter().any(|place| *place != places[0]);
    let mut columns = vec![Column::new("method", "who answered")];
    if several {
        columns.push(Column::new("where", "dataset, protocol, split"));
    }
    columns.push(Column::new("score", "the headline metric"));
    columns.extend(names.iter().map(|name| Column::new(*name, meaning(name))));
    let rows = html! {
        @for (card, place) in cards.iter().zip(&places) {
            tr class=[(card.name.kind == Answerer::Baseline).then_some("baseline")] {
                th scope="row" { (short(&card.name.label(), 80)) }
                @if several { td class="word" { (short(place, 60)) } }
                td data-value=(format!("{:.6}", card.score.value)) { (percent(card.score.value)) span class="ci" { (percent(card.score.low)) "–" (percent(card.score.high)) } }
                @for name in &names {
                    @match card.checks.iter().find(|check| check.name == *name).and_then(|check| Some((check, check.found?))) {
                        Some((check, found)) => td data-value=(format!("{:.6}", found.value)) class=(verdict(check.verdict)) { (points(found.value)) span class="ci" { (points(found.low)) " to " (points(found.high)) } },
                        None => td data-value="-9" { "–" },
                    }
                }
            }
        }
    };
    let metrics: Vec<&str> = cards.iter().map(|card| card.metric.as_str()).collect();
    let metric = metrics.first().copied().unwrap_or_default();
    let caption = html! {
        "Scores are " (metric) " in percent; the other columns are differences in points: what is lost in other locations, what is gained over the best blind baseline, what a changed query or a hidden video costs."
    };
    sortable(&caption, &columns, &rows)
}

fn meaning(check: &str) -> &'static str {
    match check {
        "other locations" => "score on test-iid less score on test-ood: what is lost where moments lie elsewhere",
        "over blind baselines" => "score less that of the best baseline that never looks at a video",
        "verb masked" => "what is lost when the verb of each query is masked",
        "verb only" => "what is lost when only the verb of each query is left",
        "words shuffled" => "what is lost when the words of each query are shuffled",
        "wrong query" => "what is lost when each query is replaced by one about another video",
        "clips shuffled" => "what is lost when the clips of the video are shuffled",
        "video hidden" => "what is lost when nothing of the video is shown",
        _ => "a difference of scores",
    }
}

/// The cards themselves.
pub(super) fn cards(cards: &[TrustCard]) -> Markup {
    html! {
        div class="cards" { @for card in cards.iter().take(CARDS) { (card_of(card)) } }
        @if cards.len() > CARDS { p class="quiet" { (thousands(cards.len() - CARDS)) " more stand in the table above and in report.json." } }
    }
}

fn card_of(card: &TrustCard) -> Markup {
    html! {
        article class="card" {
            header {
                h3 { (short(&card.name.label(), 80)) }
                p class="quiet" {
                    (short(&card.place.title(), 80)) @if !card.name.features.is_empty() { " · " (short(&card.name.features, 40)) }
                    " · " (counted(card.seeds, "seed", "seeds")) @if let Some(sd) = card.seed_sd { ", sd " (percent(sd)) }
                }
                p class="score" { (percent(card.score.value)) span class="ci" { (percent(card.score.low)) "–" (percent(card.score.high)) } span class="quiet" { (card.metric) } }
            }
            dl class="checks" { @for check in &card.checks { (check_of(check)) } (reach(card)) }
            @if let Some(misses) = &card.misses { h4 { "How it misses" } (bars::misses(misses)) }
            @if !card.weak_spots.is_empty() {
                h4 { "Where it fails" }
                ul class="spots" {
                    @for spot in &card.weak_spots {
                        li {
                            span { (spot.by) " " b { (short(&spot.class, 40)) } }
                            span { (percent(spot.estimate.value)) " " span class="quiet" { (percent(spot.estimate.low)) "–" (percent(spot.estimate.high)) ", " (counted(spot.queries, "query", "queries")) } }
                        }
                    }
                }
            }
        }
    }
}

fn check_of(check: &Check) -> Markup {
    html! {
        dt { span class=(format!("verdict {}", verdict(check.verdict))) { (sign(check.verdict)) span class="hidden" { (word(check.verdict)) } } " " (check.name) }
        dd {
            @if let Some(found) = check.found { b { (points(found.value)) } " " span class="quiet" { "(" (points(found.low)) " to " (points(found.high)) ")" } " " }
            (check.words)
        }
    }
}

/// Moments that the method could not meet, and queries that none of its answers meets.
fn reach(card: &TrustCard) -> Markup {
    html! {
        @if let Some(reach) = card.out_of_reach {
            @let lost = reach.past_the_end + reach.too_short + reach.too_long;
            dt { span class=(format!("verdict {}", if lost == 0 { "good" } else { "unclear" })) { (if lost == 0 { "✓" } else { "≈" }) span class="hidden" { (if lost == 0 { "good" } else { "unclear" }) } } " moments out of reach" }
            dd { b { (thousands(lost)) } " of " (thousands(reach.moments)) ": " (thousands(reach.past_the_end)) " past the clips it sees, " (thousands(reach.too_short)) " shorter than it can answer" @if reach.too_long > 0 { ", " (thousands(reach.too_long)) " longer" } }
        }
        @if let Some(unreached) = card.unreached {
            dt { span class="verdict none" { "·" } " beyond its list" }
            dd { b { (percent(unreached)) " %" } " of queries have no answer with IoU ≥ 0.5 anywhere in the list" }
        }
    }
}

fn verdict(verdict: TrustVerdict) -> &'static str {
    match verdict {
        TrustVerdict::Good => "good",
        TrustVerdict::Unclear => "unclear",
        TrustVerdict::Bad => "bad",
        TrustVerdict::Unknown => "none",
    }
}

fn sign(verdict: TrustVerdict) -> &'static str {
    match verdict {
        TrustVerdict::Good => "✓",
        TrustVerdict::Unclear => "≈",
        TrustVerdict::Bad => "✗",
        TrustVerdict::Unknown => "·",
    }
}

fn word(verdict: TrustVerdict) -> &'static str {
    match verdict {
        TrustVerdict::Good => "good",
        TrustVerdict::Unclear => "unclear",
        TrustVerdict::Bad => "bad",
        TrustVerdict::Unknown => "not measured",
    }
}

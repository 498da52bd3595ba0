//! The sections about datasets.

use cuemark_protocols::human_ceiling::{Agreement, Estimate, HumanCeiling};
use maud::{Markup, html};

use super::super::data_section::DataSection;
use super::table::{Column, sortable};
use super::text::{counted, percent, points, short, thousands};
use super::{bars, heat_map};

/// Verbs in the table.
const VERBS: usize = 12;

pub(super) fn section(data: &DataSection) -> Markup {
    let full = heat_map::full_tone(None, &data.maps);
    let highest = data.lengths.iter().flat_map(|lengths| &lengths.shares).copied().fold(0.0, f64::max);
    html! {
        @for note in &data.notes { p class="note" { (note) } }
        (splits(data))
        h3 { "Where moments lie" }
        p class="quiet" { "Start across, end up, in twentieths of the video; one scale for all splits." }
        div class="maps" { @for map in &data.maps { (heat_map::heat_map(map, full)) } }
        h3 { "How long they are" }
        div class="maps" {
            @for lengths in &data.lengths {
                figure class="map" {
                    (bars::histogram(&format!("lengths of the moments of {}", short(&lengths.split, 40)), &lengths.shares, highest))
                    figcaption { b { (short(&lengths.split, 40)) } }
                }
            }
        }
        @if !data.audit.distances.is_empty() { (distances(data)) }
        @if data.audit.baselines.is_empty() {
            p class="note" { "Without a training split there is nothing that a blind baseline could learn; none was scored." }
        } @else { (baselines(data)) }
        @if !data.audit.gaps.is_empty() { (gaps(data)) }
        @if let Some(people) = &data.people { (ceiling(people)) }
        @if !data.audit.verbs.top.is_empty() { (verbs(data)) }
    }
}

fn splits(data: &DataSection) -> Markup {
    let columns = [
        Column::new("split", "its name"),
        Column::new("videos", "videos that queries are about"),
        Column::new("queries", "sentences"),
        Column::new("moments", "pairs of query and moment"),
        Column::new("mean start", "percent of the video"),
        Column::new("mean end", "percent of the video"),
        Column::new("mean length", "percent of the video"),
        Column::new("longer than half", "percent of the moments"),
        Column::new("past the end", "percent of the moments that end after their video"),
    ];
    let rows = html! {
        @for (counts, places) in data.audit.splits.iter().zip(&data.audit.places) {
            tr {
                th scope="row" { (short(&places.split, 40)) }
                @for count in [counts.videos, counts.queries, counts.pairs] { td data-value=(count) { (thousands(count)) } }
                @for share in [places.mean_start, places.mean_end, places.mean_length, places.longer_than_half, places.past_the_end] {
                    td data-value=(format!("{share:.6}")) { (percent(share)) }
                }
            }
        }
    };
    sortable(&html! { "What each split holds; shares in percent." }, &columns, &rows)
}

fn distances(data: &DataSection) -> Markup {
    let columns = [
        Column::new("splits", "which two"),
        Column::new("energy distance", "0 when moments are placed alike; in fractions of a video"),
        Column::new("p", "how often a random division is as far apart"),
        Column::new("moments", "one per video, at most 400 a split"),
    ];
    let rows = html! {
        @for found in &data.audit.distances {
            tr {
                th scope="row" { (short(&found.left, 40)) " – " (short(&found.right, 40)) }
                td data-value=(found.energy) { (format!("{:.4}", found.energy)) }
                td data-value=(found.p_value) { (format!("{:.3}", found.p_value)) }
                td data-value=(found.left_moments) { (thousands(found.left_moments)) " and " (thousands(found.right_moments)) }
            }
        }
    };
    html! { h3 { "How far apart the splits lie" } (sortable(&html! { "Energy distance between the moments of two splits, and whether chance explains it." }, &columns, &rows)) }
}

fn baselines(data: &DataSection) -> Markup {
    let thresholds: Vec<f64> =
        data.audit.baselines.first().map_or(Vec::new(), |found| found.scores.iter().map(|s| s.threshold).collect());
    let mut columns =
        vec![Column::new("baseline", "answers without looking at the video"), Column::new("split", "what it answers")];
    for threshold in &thresholds {
        columns.push(Column::new(format!("R@1,IoU={threshold}"), "share of queries that it answers rightly"));
        columns.push(Column::new(
            format!("dR@1,IoU={threshold}"),
            "the same, hits counting less the further their ends are off",
        ));
    }
    let rows = html! {
        @for found in &data.audit.baselines {
            tr {
                th scope="row" { (found.baseline) }
                td class="word" { (short(&found.split, 40)) }
                @for score in &found.scores {
                    @for (value, sd) in [(score.recall, score.recall_sd), (score.discounted, score.discounted_sd)] {
                        td data-value=(format!("{value:.6}")) { (percent(value)) @if found.seeds > 1 { span class="sd" { " ±" (percent(sd)) } } }
                    }
                }
            }
        }
    };
    html! {
        h3 { "How far one gets without looking" }
        (sortable(&html! { "Percent of queries; fitted to the training split. ± is the standard deviation over " (data.audit.baselines.iter().map(|found| found.seeds).max().unwrap_or(1)) " seeds, where answers are drawn." }, &columns, &rows))
    }
}

fn gaps(data: &DataSection) -> Markup {
    let columns = [
        Column::new("baseline", "answers without looking at the video"),
        Column::new("test-iid", "dR@1,IoU=0.5"),
        Column::new("test-ood", "dR@1,IoU=0.5"),
        Column::new("gap", "test-iid less test-ood"),
    ];
    let rows = html! {
        @for gap in &data.audit.gaps {
            tr {
                th scope="row" { (gap.baseline) }
                td data-value=(gap.iid) { (percent(gap.iid)) } td data-value=(gap.ood) { (percent(gap.ood)) }
                td data-value=(gap.gap) { (points(gap.gap)) span class="ci" { (points(gap.low)) " to " (points(gap.high)) } }
            }
        }
    };
    html! { h3 { "What blind guessing loses out of distribution" } (sortable(&html! { "dR@1,IoU=0.5 in percent; interval from resampling videos." }, &columns, &rows)) }
}

fn ceiling(people: &HumanCeiling) -> Markup {
    let columns = [
        Column::new("metric", "what people reach against each other"),
        Column::new("one other person is right", "each person against each other"),
        Column::new("any other person is right", "each person against the best match among the others"),
    ];
    let cell = |found: Estimate| html! { td data-value=(format!("{:.6}", found.value)) { (percent(found.value)) span class="ci" { (percent(found.low)) "–" (percent(found.high)) } } };
    let row = |name: String, of: &dyn Fn(&Agreement) -> Option<Estimate>| {
        html! { tr { th scope="row" { (name) } @for side in [&people.one, &people.any] { @if let Some(found) = of(side) { (cell(found)) } @else { td { "–" } } } } }
    };
    let rows = html! {
        @for (n, at) in people.one.recall.iter().enumerate() {
            (row(format!("R@1,IoU={}", at.threshold), &|side| side.recall.get(n).map(|at| at.recall)))
        }
        (row("mIoU".to_owned(), &|side| Some(side.mean_iou)))
    };
    let caption = html! { (counted(people.queries, "query", "queries")) " that at least two people marked again, " (thousands(people.spans)) " spans; percent, 95 % interval." };
    html! { h3 { "What people reach against each other" } (sortable(&caption, &columns, &rows)) }
}

fn verbs(data: &DataSection) -> Markup {
    let table = &data.audit.verbs;
    let mut columns = vec![Column::new("verb", "first verb of the query, in its base form")];
    columns.extend(table.splits.iter().map(|split| Column::new(short(split, 40), "percent of its queries")));
    let rows = html! {
        @for row in table.top.iter().take(VERBS) {
            tr {
                th scope="row" { (short(&row.verb, 40)) }
                @for (count, all) in row.queries.iter().zip(&table.queries) {
                    @let share = *count as f64 / (*all).max(1) as f64;
                    td data-value=(format!("{share:.6}")) { (percent(share)) }
                }
            }
        }
    };
    let coverage: Vec<String> = table
        .splits
        .iter()
        .zip(&table.coverage)
        .map(|(split, share)| format!("{} {}", short(split, 40), percent(*share)))
        .collect();
    let caption = html! { "Percent of the queries of each split that begin with the verb. The thirty most frequent cover: " (coverage.join(", ")) "." };
    html! { h3 { "Which verbs queries begin with" } (sortable(&caption, &columns, &rows)) }
}

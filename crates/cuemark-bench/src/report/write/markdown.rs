//! The report as Markdown, for a pull request or a wiki.

use super::super::table::{Cell, Table};
use super::super::trust::{TrustCard, TrustVerdict};
use super::super::{Intervals, Report};
use super::text::{counted, harmless, percent, points, short, thousands};

pub(super) fn markdown(report: &Report) -> String {
    let mut text = format!("# {}\n", safe(&report.title));
    for note in &report.notes {
        text += &format!("\n> {}\n", safe(note));
    }
    for board in &report.boards {
        text += &format!("\n## {}\n\n{}", safe(&board.table.place.title()), table(&board.table, report.intervals));
    }
    if !report.cards.is_empty() {
        text += "\n## Trust cards\n";
        for card in &report.cards {
            text += &trust_card(card);
        }
    }
    for data in &report.data {
        text += &format!("\n## {}\n\n", safe(&data.title));
        for note in &data.notes {
            text += &format!("> {}\n\n", safe(note));
        }
        text += "| split | videos | queries | moments | mean length | longer than half |\n| --- | ---: | ---: | ---: | ---: | ---: |\n";
        for (counts, places) in data.audit.splits.iter().zip(&data.audit.places) {
            let (videos, queries, pairs) =
                (thousands(counts.videos), thousands(counts.queries), thousands(counts.pairs));
            let (length, long) = (percent(places.mean_length), percent(places.longer_than_half));
            text += &format!("| {} | {videos} | {queries} | {pairs} | {length} | {long} |\n", safe(&places.split));
        }
        if !data.audit.baselines.is_empty() {
            text += "\n| baseline | split | R@1,IoU=0.5 | dR@1,IoU=0.5 | R@1,IoU=0.7 | dR@1,IoU=0.7 |\n| --- | --- | ---: | ---: | ---: | ---: |\n";
            for found in &data.audit.baselines {
                let scores: Vec<String> =
                    found.scores.iter().flat_map(|score| [percent(score.recall), percent(score.discounted)]).collect();
                text += &format!("| {} | {} | {} |\n", found.baseline, safe(&found.split), scores.join(" | "));
            }
        }
        if let Some(people) = &data.people {
            text += &format!(
                "\nPeople against each other, {}: mIoU {}.\n",
                counted(people.queries, "query", "queries"),
                percent(people.one.mean_iou.value)
            );
        }
    }
    text += &format!("\nMade by cuemark {}.\n", report.cuemark);
    harmless(&text).into_owned()
}

fn table(table: &Table, intervals: Intervals) -> String {
    let header: Vec<String> = table.metrics.iter().map(|name| safe(name)).collect();
    let mut text = format!("| method | {} |\n| --- |{}\n", header.join(" | "), " ---: |".repeat(header.len()));
    for row in &table.rows {
        let cells: Vec<String> =
            row.cells.iter().map(|cell| cell.as_ref().map_or("–".to_owned(), |cell| score(cell, intervals))).collect();
        let seeds = if row.seeds > 1 { format!(" ({} seeds)", row.seeds) } else { String::new() };
        text += &format!("| {}{seeds} | {} |\n", safe(&row.name.label()), cells.join(" | "));
    }
    text += &format!(
        "\n{}; percent{}, ± over seeds. Bold: better than the next best, paired test, p < 0.05.\n",
        counted(table.queries, "query", "queries"),
        if intervals == Intervals::Shown { ", 95 % interval in brackets" } else { "" }
    );
    text
}

fn score(cell: &Cell, intervals: Intervals) -> String {
    let value = percent(cell.estimate.value);
    let mut text = if cell.best { format!("**{value}**") } else { value };
    if let Some(sd) = cell.sd {
        text += &format!(" ±{}", percent(sd));
    }
    if intervals == Intervals::Shown {
        text += &format!(" [{}, {}]", percent(cell.estimate.low), percent(cell.estimate.high));
    }
    for printed in &cell.published {
        text += &format!("<br>{} ({}, table {})", safe(&printed.printed), printed.paper, safe(&printed.table));
    }
    text
}

fn trust_card(card: &TrustCard) -> String {
    let mut text = format!(
        "\n### {}\n\n{}, {}: **{}** [{}, {}], {}\n\n",
        safe(&card.name.label()),
        safe(&card.place.title()),
        safe(&card.metric),
        percent(card.score.value),
        percent(card.score.low),
        percent(card.score.high),
        counted(card.seeds, "seed", "seeds")
    );
    for check in &card.checks {
        let sign = match check.verdict {
            TrustVerdict::Good => "✓",
            TrustVerdict::Unclear => "≈",
            TrustVerdict::Bad => "✗",
            TrustVerdict::Unknown => "·",
        };
        let found = check.found.map_or(String::new(), |found| {
            format!("{} ({} to {}) ", points(found.value), points(found.low), points(found.high))
        });
        text += &format!("- {sign} {}: {found}{}\n", check.name, safe(&check.words));
    }
    if let Some(reach) = card.out_of_reach {
        let lost = reach.past_the_end + reach.too_short + reach.too_long;
        text += &format!("- moments out of reach: {} of {}\n", thousands(lost), thousands(reach.moments));
    }
    for spot in &card.weak_spots {
        let queries = counted(spot.queries, "query", "queries");
        text +=
            &format!("- fails on {} {}: {} ({queries})\n", spot.by, safe(&spot.class), percent(spot.estimate.value));
    }
    text
}

/// Text from anywhere: one line, short, and nothing that Markdown or HTML would act on.
fn safe(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    for c in short(text, 300).chars() {
        match c {
            '<' => out.push_str("&lt;"),
            '>' => out.push_str("&gt;"),
            '&' => out.push_str("&amp;"),
            '\\' | '`' | '*' | '_' | '[' | ']' | '|' | '#' | '~' => out.extend(['\\', c]),
            c if c.is_whitespace() => out.push(' '),
            c => out.push(c),
        }
    }
    out
}

#[cfg(test)]
mod tests {
    use super::safe;

    #[test]
    fn text_from_anywhere_stays_one_harmless_cell() {
        assert_eq!(safe("a|b\n<img src=x> [x](y)"), "a\\|b &lt;img src=x&gt; \\[x\\](y)");
    }
}

//! The page: one file, no request to anywhere, nothing in it runs but the sorting of tables.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use maud::{DOCTYPE, Markup, PreEscaped, html};
use sha2::{Digest as _, Sha256};

use super::super::Report;
use super::chart::Palette;
use super::text::{counted, harmless, short};
use super::{cards, data, sections};

const STYLE: &str = include_str!("style.css");
const SCRIPT: &str = include_str!("script.js");

/// One section: its anchor, its name, what stands in it.
struct Section {
    anchor: String,
    name: String,
    body: Markup,
}

pub(super) fn html(report: &Report) -> String {
    let sections = sections_of(report);
    let page = html! {
        (DOCTYPE)
        html lang="en" {
            head {
                meta charset="utf-8";
                // Whatever a query or a name manages to smuggle in, a browser runs and fetches nothing but our own.
                meta http-equiv="Content-Security-Policy" content=(policy(report));
                meta name="viewport" content="width=device-width, initial-scale=1";
                meta name="color-scheme" content="light dark";
                meta name="generator" content=(format!("cuemark {}", report.cuemark));
                link rel="icon" href="data:,";
                title { (short(&report.title, 200)) }
                style { (PreEscaped(STYLE)) }
            }
            body {
                a class="skip" href="#content" { "Skip to the content" }
                header class="top" {
                    h1 { (short(&report.title, 200)) }
                    p class="quiet" { (facts(report)) }
                }
                div class="columns" {
                    nav aria-label="Sections" { ol { @for section in &sections { li { a href=(format!("#{}", section.anchor)) { (short(&section.name, 60)) } } } } }
                    main id="content" {
                        @for note in &report.notes { p class="note" { (short(note, 1000)) } }
                        @for section in &sections {
                            section id=(section.anchor) { h2 { (short(&section.name, 120)) } (section.body) }
                        }
                    }
                }
                footer { p class="quiet" { "Made by cuemark " (report.cuemark) ". The same figures as data: report.json, report.csv; for papers: report.tex; as text: report.md." } }
                script { (PreEscaped(SCRIPT)) }
            }
        }
    };
    harmless(&page.into_string()).into_owned()
}

fn facts(report: &Report) -> String {
    let methods = report.cards.len();
    let queries: usize = report.boards.iter().map(|board| board.table.queries).sum();
    let mut facts = Vec::new();
    if !report.boards.is_empty() {
        facts.push(counted(methods, "method", "methods"));
        facts.push(counted(report.boards.len(), "test list", "test lists"));
        facts.push(counted(queries, "query", "queries"));
    }
    if !report.data.is_empty() {
        facts.push(counted(report.data.len(), "dataset examined", "datasets examined"));
    }
    facts.join(" · ")
}

fn sections_of(report: &Report) -> Vec<Section> {
    let mut sections = Vec::new();
    let mut push = |name: String, body: Markup| {
        let anchor = format!("s{}", sections.len() + 1);
        sections.push(Section { anchor, name, body });
    };
    if !report.cards.is_empty() {
        push("At a glance".to_owned(), cards::overview(&report.cards));
    }
    let shown = report.boards.iter().flat_map(|board| board.breakdowns.first()).flat_map(|found| &found.entries);
    let drawn = report.boards.iter().flat_map(|board| &board.calibrations).map(|found| found.label.as_str());
    let palette = Palette::of_labels(shown.map(|entry| entry.label.as_str()).chain(drawn));
    for board in &report.boards {
        push(board.table.place.title(), sections::board(board, &palette));
    }
    if !report.cards.is_empty() {
        push("Trust cards".to_owned(), cards::cards(&report.cards));
    }
    for dataset in &report.data {
        push(dataset.title.clone(), data::section(dataset));
    }
    if !report.training.is_empty() {
        push("Training".to_owned(), sections::training(&report.training));
    }
    push("How to read this".to_owned(), reading(report));
    sections
}

fn reading(report: &Report) -> Markup {
    let mut conventions: Vec<&String> = Vec::new();
    for line in report.boards.iter().flat_map(|board| &board.table.conventions) {
        if !conventions.contains(&line) {
            conventions.push(line);
        }
    }
    html! {
        ul class="reading" {
            @if !report.boards.is_empty() {
                li { "Intervals of scores are 95 % percentile bootstraps over queries, computed once when a run was evaluated. With several seeds, values and interval ends are averaged over them." }
                li { "A number is bold when it is the highest of its column and a paired randomisation test against the next highest gives p < 0.05. Nothing bold means: do not believe the order at the top." }
                li { "A trust card sets " b { "✓" } " where a check speaks for the method, " b { "✗" } " where it speaks against it, " b { "≈" } " where it cannot be told, " b { "·" } " where nothing was measured. A method that does not suffer when the verb is masked does not read the verb; one that keeps most of its score on a wrong query answers from the video or from habit." }
                li { "“Other locations” compares test-iid with test-ood: other queries, so the intervals of both count. All other differences are paired, query by query." }
                li { "Published figures stand below ours with a letter for their source; two papers that print different numbers for the same thing are both shown." }
            }
            @for line in conventions { li { (short(line, 300)) } }
            @if !report.data.is_empty() {
                li { "Blind baselines answer every query and look at no video: the whole video (predict-all), a draw from the places of training moments (bias-draw), the densest of many draws (bias-density), the densest place (bias-mode), the densest place for the query's verb (bias-verb)." }
            }
        }
    }
}

/// Nothing may be fetched or run, except our own style and script, which are named by their hashes.
/// With films, the page may also load them, from where it lies itself.
fn policy(report: &Report) -> String {
    let films = report.boards.iter().flat_map(|board| &board.examples).any(|example| example.film.is_some());
    let media = if films { " media-src 'self' file:;" } else { "" };
    let hash = |text: &str| format!("'sha256-{}'", STANDARD.encode(Sha256::digest(text.as_bytes())));
    format!(
        "default-src 'none';{media} style-src {}; script-src {}; img-src data:; base-uri 'none'; form-action 'none'",
        hash(STYLE),
        hash(SCRIPT)
    )
}

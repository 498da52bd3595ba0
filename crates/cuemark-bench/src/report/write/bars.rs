//! Bars: how misses divide, and lengths of moments.

use maud::{Markup, html};

use super::super::behaviour::Misses;
use super::chart::short;
use super::text::percent;

/// One bar for a run: hits and the kinds of misses, which add up to all queries.
pub(super) fn misses(misses: &Misses) -> Markup {
    let kinds = [
        ("elsewhere", misses.elsewhere, "m1"),
        ("too long", misses.too_long, "m2"),
        ("too short", misses.too_short, "m3"),
        ("shifted", misses.shifted, "m4"),
        ("no answer", misses.none, "m5"),
    ];
    let missed: f64 = kinds.iter().map(|kind| kind.1).sum();
    let parts: Vec<(&str, f64, &str)> =
        std::iter::once(("hit", (1.0 - missed).max(0.0), "m0")).chain(kinds).filter(|part| part.1 > 0.0005).collect();
    let label: Vec<String> = parts.iter().map(|(name, share, _)| format!("{name} {} %", percent(*share))).collect();
    let starts: Vec<f64> = parts
        .iter()
        .scan(0.0, |at, (_, share, _)| {
            let from = *at;
            *at += 300.0 * share;
            Some(from)
        })
        .collect();
    html! {
        div class="misses" {
            svg viewBox="0 0 300 12" preserveAspectRatio="none" role="img" aria-label=(label.join(", ")) {
                @for ((_, share, class), from) in parts.iter().zip(starts) {
                    rect class=(class) x=(short(from)) y="0" width=(short(300.0 * share)) height="12" {}
                }
            }
            ul class="legend" {
                @for (name, share, class) in &parts {
                    li { svg class="chip" viewBox="0 0 8 8" aria-hidden="true" { rect class=(class) width="8" height="8" {} } (name) " " (percent(*share)) }
                }
            }
        }
    }
}

/// A histogram of shares.
pub(super) fn histogram(label: &str, shares: &[f64], highest: f64) -> Markup {
    let width = 200.0 / shares.len().max(1) as f64;
    let height = |share: f64| 80.0 * (share / highest.max(f64::MIN_POSITIVE)).min(1.0);
    html! {
        svg class="histogram" viewBox="0 0 200 98" role="img" aria-label=(label) {
            @for (n, share) in shares.iter().enumerate() {
                rect class="column" x=(short(n as f64 * width + 0.5)) y=(short(82.0 - height(*share))) width=(short(width - 1.0)) height=(short(height(*share))) {}
            }
            line class="axis" x1="0" x2="200" y1="82" y2="82" {}
            text class="tick" x="0" y="94" { "0" }
            text class="tick middle" x="100" y="94" { "half of the video" }
            text class="tick end" x="200" y="94" { "all" }
        }
    }
}

//! Pictures of the benchmarks, for the site: below every table that has ratios, a bar for each, so that one sees what a column of
//! figures hides. Made of the page's own text, so that they never say anything else.

use std::fmt::Write as _;

/// One ratio of a table.
#[derive(Debug, PartialEq)]
struct Bar {
    what: String,
    ratio: f64,
    wanted: Option<Goal>,
}

/// What was wanted of a ratio.
#[derive(Debug, Clone, Copy, PartialEq)]
enum Goal {
    AtLeast(f64),
    AtMost(f64),
}

impl Goal {
    /// `1.2x`, `>= 0.8x`, `<= 0.6x`; `None` of other words.
    fn parse(cell: &str) -> Option<Self> {
        match cell.strip_prefix("<=") {
            Some(most) => Some(Self::AtMost(ratio(most)?)),
            None => Some(Self::AtLeast(ratio(cell.trim_start_matches(">="))?)),
        }
    }

    fn value(self) -> f64 {
        match self {
            Self::AtLeast(value) | Self::AtMost(value) => value,
        }
    }

    fn is_met_by(self, ratio: f64) -> bool {
        match self {
            Self::AtLeast(least) => ratio >= least,
            Self::AtMost(most) => ratio <= most,
        }
    }
}

/// The page with bars below every table that has at least two ratios.
pub(crate) fn with_plots(page: &str) -> String {
    let mut plotted = String::new();
    let mut table: Vec<&str> = Vec::new();
    // A line behind the last ends a table that the page ends with.
    for line in page.lines().chain([""]) {
        if line.starts_with('|') {
            table.push(line);
        } else if !table.is_empty() {
            let bars = bars(&table);
            table.clear();
            if bars.len() > 1 {
                plotted += &picture(&bars);
            }
        }
        plotted += line;
        plotted.push('\n');
    }
    plotted.pop();
    plotted
}

fn cells(line: &str) -> Vec<String> {
    let inner = line.trim().trim_matches('|');
    inner.split('|').map(|cell| cell.trim().replace("**", "")).collect()
}

/// `1.18x`, `0.84×`; `None` of anything else.
fn ratio(cell: &str) -> Option<f64> {
    let number = cell.trim().strip_suffix(['x', '×'])?.parse().ok()?;
    (number > 0.0).then_some(number)
}

/// The ratios of a table: what they are of stands in its first column, and in the next where that is called `part`.
fn bars(table: &[&str]) -> Vec<Bar> {
    let Some((header, rows)) = table.split_first() else { return Vec::new() };
    let header = cells(header);
    let column = |names: &[&str]| header.iter().position(|name| names.iter().any(|known| name.starts_with(known)));
    let Some(at) = column(&["ratio"]) else { return Vec::new() };
    let (goal, part) = (column(&["wanted", "goal"]), header.get(1).is_some_and(|name| name == "part"));
    let bar = |row: &&str| {
        let cells = cells(row);
        let mut what = cells.first()?.clone();
        if let (true, Some(part)) = (part, cells.get(1)) {
            write!(what, ", {part}").ok()?;
        }
        let wanted = goal.and_then(|goal| Goal::parse(cells.get(goal)?));
        Some(Bar { what, ratio: ratio(cells.get(at)?)?, wanted })
    };
    rows.iter().filter_map(bar).collect()
}

/// Bars to the right of "as fast" or to its left, on a scale of logarithms; what was wanted is a line across.
fn picture(bars: &[Bar]) -> String {
    let goals = bars.iter().filter_map(|bar| bar.wanted).map(Goal::value);
    let all: Vec<f64> = bars.iter().map(|bar| bar.ratio.ln()).chain(goals.map(f64::ln)).chain([0.0]).collect();
    let (low, high) = (all.iter().copied().fold(0.0, f64::min), all.iter().copied().fold(0.0, f64::max));
    let place = |ratio: f64| 100.0 * (ratio.ln() - low) / (high - low).max(f64::MIN_POSITIVE);
    let mut html = String::from("\n<div class=\"plot\">\n");
    for Bar { what, ratio, wanted } in bars {
        let (from, to) = (place(1.0).min(place(*ratio)), place(1.0).max(place(*ratio)));
        let short = wanted.is_some_and(|goal| !goal.is_met_by(*ratio));
        let (kind, told) = if short { ("short", ", short of what was wanted") } else { ("met", "") };
        html += &format!("<p>{} <b>{ratio}x</b>{told}</p>\n", escaped(what));
        html += &format!(
            "<div><i class=\"{kind}\" style=\"left:{from:.1}%;width:{:.1}%\"></i><i class=\"one\" style=\"left:{:.1}%\"></i>",
            (to - from).max(0.3),
            place(1.0)
        );
        if let Some(goal) = wanted {
            html += &format!("<i class=\"wanted\" style=\"left:{:.1}%\"></i>", place(goal.value()));
        }
        html += "</div>\n";
    }
    html += "<p><small>Thin line: 1x, no difference. Thick line: what was wanted. Each length is a logarithm.</small></p>\n</div>\n";
    html
}

fn escaped(text: &str) -> String {
    text.replace('&', "&amp;").replace('<', "&lt;").replace('>', "&gt;").replace('`', "")
}

#[cfg(test)]
mod tests {
    use super::*;

    const TABLE: [&str; 5] = [
        "| what | part | PyTorch | cuemark | ratio | wanted |",
        "| --- | --- | --- | --- | --- | --- |",
        "| a<b | step | 4 s | 2 s | **2.00x** | 1.0x |",
        "| a<b | query | 1 s | 2 s | 0.50x | >= 1.0x |",
        "| c | query | - | 2 s | - | - |",
    ];

    #[test]
    fn ratios_and_what_was_wanted_of_them_are_read() {
        let found = bars(&TABLE);
        let bar = |what: &str, ratio| Bar { what: what.to_owned(), ratio, wanted: Some(Goal::AtLeast(1.0)) };
        assert_eq!(found, [bar("a<b, step", 2.0), bar("a<b, query", 0.5)]);
        assert!(bars(&["| a | b |", "| --- | --- |", "| 1x | 2x |"]).is_empty());
        assert_eq!(Goal::parse("<= 0.6x"), Some(Goal::AtMost(0.6)));
        assert!(Goal::AtMost(0.6).is_met_by(0.3) && !Goal::AtLeast(1.0).is_met_by(0.99));
        assert_eq!(Goal::parse("reported"), None);
    }

    #[test]
    fn a_bar_begins_at_no_difference_and_a_page_keeps_its_text() {
        let page = format!("# T\n\n{}\n\nwords\n", TABLE.join("\n"));
        let plotted = with_plots(&page);
        // Twice as fast and twice as slow: no difference lies in the middle.
        assert!(plotted.contains("class=\"met\" style=\"left:50.0%;width:50.0%\""), "{plotted}");
        assert!(plotted.contains("class=\"short\" style=\"left:0.0%;width:50.0%\""), "{plotted}");
        assert!(plotted.contains("a&lt;b, step"));
        assert!(plotted.starts_with("# T\n") && plotted.ends_with("\n\nwords\n"));
        assert_eq!(
            with_plots("# T\n\n| a | ratio |\n| --- | --- |\n| b | 2x |\n"),
            "# T\n\n| a | ratio |\n| --- | --- |\n| b | 2x |\n"
        );
    }
}

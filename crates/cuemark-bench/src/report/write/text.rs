//! Numbers and words as reports print them.

pub(super) use cuemark_core::text::thousands;

use std::borrow::Cow;

/// `53.9`: a fraction as percent.
pub(super) fn percent(fraction: f64) -> String {
    let text = format!("{:.1}", 100.0 * fraction);
    if text == "-0.0" { "0.0".to_owned() } else { text.replace('-', "\u{2212}") }
}

/// `+3.2` or `−3.2`: a difference of fractions in percentage points.
pub(super) fn points(fraction: f64) -> String {
    let text = percent(fraction);
    if fraction > 0.0 && text != "0.0" { format!("+{text}") } else { text }
}

/// `1 query`, `2 queries`
pub(super) fn counted(number: usize, one: &str, many: &str) -> String {
    format!("{} {}", thousands(number), if number == 1 { one } else { many })
}

/// Without characters that no page may hold or that turn the direction of what follows them.
///
/// Queries and names come from anywhere; they are escaped where they are printed, and this takes out the rest.
pub(super) fn harmless(text: &str) -> Cow<'_, str> {
    let harmful = |c: char| {
        let direction = matches!(c, '\u{200e}' | '\u{200f}' | '\u{202a}'..='\u{202e}' | '\u{2066}'..='\u{2069}');
        let nothing = matches!(c, '\u{fdd0}'..='\u{fdef}') || (c as u32 & 0xfffe) == 0xfffe;
        (c.is_control() && !matches!(c, '\n' | '\t')) || direction || nothing
    };
    if text.contains(harmful) { Cow::Owned(text.replace(harmful, "\u{fffd}")) } else { Cow::Borrowed(text) }
}

/// At most `most` characters, with an ellipsis where something was cut.
pub(super) fn short(text: &str, most: usize) -> Cow<'_, str> {
    match text.char_indices().nth(most) {
        Some((cut, _)) => Cow::Owned(format!("{}…", &text[..cut])),
        None => Cow::Borrowed(text),
    }
}

/// What a metric's name says, for people who meet it first.
pub(super) fn explained(metric: &str) -> String {
    let (kind, rest) = metric.split_once('@').unwrap_or((metric, ""));
    let (n, overlap) = rest.split_once(",IoU=").unwrap_or((rest, ""));
    match kind {
        "R" if n == "1" => format!("share of queries whose first answer overlaps the truth by {overlap} or more"),
        "R" => format!("share of queries with one of the first {n} answers overlapping the truth by {overlap} or more"),
        "dR" => format!("as R@{n},IoU={overlap}, each hit counting less the further its ends are off"),
        "mIoU" => "mean overlap of the first answer with the truth".to_owned(),
        _ if metric.starts_with("HL-mAP") => {
            "how well clips are ranked by the score they were given, per rater".to_owned()
        }
        _ if metric.starts_with("HL-Hit1") => {
            "share of queries whose best-scored clip a rater calls a highlight".to_owned()
        }
        "NDCG" => format!("graded gain of the first {n} answers, matched at overlap {overlap}"),
        _ => metric.to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_read_well() {
        assert_eq!(
            (percent(0.5394), points(0.032), points(-0.032)),
            ("53.9".into(), "+3.2".into(), "\u{2212}3.2".into())
        );
        assert_eq!((percent(-0.0001), points(0.0001)), ("0.0".into(), "0.0".into()));
        assert_eq!(counted(12_408, "query", "queries"), "12,408 queries");
    }

    #[test]
    fn what_no_page_may_hold_is_taken_out() {
        assert_eq!(harmless("plain \n text"), "plain \n text");
        assert_eq!(harmless("a\u{0}b\u{202e}c\u{7f}"), "a\u{fffd}b\u{fffd}c\u{fffd}");
        assert_eq!(short("äöü", 2), "äö…");
        assert_eq!(short("äö", 2), "äö");
    }
}

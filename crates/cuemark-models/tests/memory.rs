//! Answering many queries takes no more memory than answering a few. Apart from the other tests, whose memory would be counted too.
#![cfg(test)] // so that clippy.toml knows the helpers for tests too

use cuemark_core::Rng;
use cuemark_models::registry::MODELS;
use cuemark_models::{Given, suppress};
use cuemark_tensor::{Device, Params};

#[path = "../examples/zoo_step/draw.rs"]
mod draw;

use draw::{Draw, normal};

/// Queries between two looks at memory, and how often it is looked at.
const QUERIES: usize = 10;
const LOOKS: usize = 4;
/// Less than the clips of so many queries: 10 × 32 clips × 128 numbers × 4 bytes are 160 kB.
const KEPT: u64 = 120 << 10;
/// Widths that are small beside what a model would keep of a query if it kept one.
const VISUAL: usize = 128;
const WORDS: usize = 32;
const VOCABULARY: usize = 200;

/// Bytes that the process holds.
fn held() -> Option<u64> {
    let status = std::fs::read_to_string("/proc/self/status").ok()?;
    let line = status.lines().find_map(|line| line.strip_prefix("VmRSS:"))?;
    Some(line.trim().trim_end_matches("kB").trim().parse::<u64>().ok()? * 1024)
}

/// Every model, at its size for the world, answers queries of ever new ids. A model that kept something of each would need
/// more memory after every ten; one that does not needs no more at least once, whatever the allocator holds back.
#[test]
fn answering_more_queries_takes_no_more_memory() {
    if held().is_none() {
        return; // only Linux tells
    }
    for card in MODELS {
        let path = format!("{}/../../runs/{}/world.toml", env!("CARGO_MANIFEST_DIR"), card.name);
        let run: toml::Table = std::fs::read_to_string(&path).unwrap().parse().unwrap();
        let mut settings = run["model"].as_table().unwrap().clone();
        settings.remove("name");
        let verbs = normal(&mut Rng::new(3), &[20, WORDS]).unwrap();
        let given = Given { verbs: Some(verbs), ..Given::widths(VISUAL, WORDS, VOCABULARY) };
        let model = card.build(&settings, &given, Params::seeded(1, &Device::Cpu).builder()).unwrap();
        let input = model.input();
        let mut looks = Vec::new();
        for query in 0..QUERIES * LOOKS {
            let batch = Draw { input: &input, given: &given, size: 1, per_video: 1 }.batch(query as u64).unwrap();
            let proposals = model.propose(&batch).unwrap();
            assert!(!suppress(&proposals[0], 1.0, 5, None).is_empty(), "{}", card.name);
            if (query + 1).is_multiple_of(QUERIES) {
                looks.push(held().unwrap());
            }
        }
        let grown = looks.windows(2).map(|pair| pair[1].saturating_sub(pair[0])).min();
        assert!(grown < Some(KEPT), "{}: {looks:?}", card.name);
    }
}

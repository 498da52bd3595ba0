//! The demo's collection: test videos in an index.

use camino::Utf8PathBuf;
use cuemark_core::text::thousands;
use cuemark_core::{Progress, Split, VideoId};
use cuemark_data::{ReadOptions, read_truth};
use cuemark_formats::{Overwrite, Source};
use cuemark_search::{AddOptions, Added, EngineUrl, Index, Settling, encoder};
use cuemark_tensor::Device;
use cuemark_world::{WorldError, film_reels, watch_reels};
use serde_json::{Value, json};

use super::{Stage, shipped, world};
use crate::output::say;
use crate::progress::shown;

/// The split whose videos are indexed and whose queries are asked.
pub(super) const SPLIT: &str = "test-iid";

/// Indexes the test videos with the encoder that comes with the program: as files where `ffmpeg` can film them, by features of the
/// same pictures where not.
pub(super) fn index(stage: &mut Stage) -> anyhow::Result<()> {
    let run = stage.study.out.join("encoder");
    shipped::unpack(&run)?;
    let run = run.canonicalize_utf8()?;
    let videos: Vec<VideoId> = split(stage)?.videos.iter().map(|video| video.id.clone()).collect();
    let stop = || stage.progress.is_stopped();
    let (files, features) = match shown(&stage.progress, "filming", || shot(stage, &videos)) {
        _ if stop() => {
            stage.stopped = true;
            return Ok(());
        }
        shot => shot?,
    };
    let encoder = encoder::open(run.as_str(), features.as_deref(), &Device::Cpu)?;
    let url = EngineUrl::File(stage.study.out.join("index"));
    let is_ours = Index::manifest_of(&url).is_ok_and(|manifest| manifest.encoder == run.as_str());
    let index = if is_ours { Index::open(&url, encoder)? } else { Index::create(&url, encoder, Overwrite::Force)? };
    let added = add(&index, &files, &videos, &stage.progress)?;
    let status = index.engine().status()?;
    say(&format!(
        "  {} moments of {} videos{}",
        thousands(status.moments),
        thousands(status.videos),
        if added.unchanged > 0 { ", some of them from before" } else { "" }
    ));
    stage.index = (!stop()).then_some(index);
    stage.stopped = stop();
    Ok(())
}

/// The videos as files, or the store of what is seen in them where there is no `ffmpeg`.
fn shot(stage: &Stage, videos: &[VideoId]) -> anyhow::Result<(Vec<Utf8PathBuf>, Option<Utf8PathBuf>)> {
    let world = world(stage);
    match film_reels(&world, videos, &stage.progress) {
        Err(WorldError::Ffmpeg { problem, .. }) => {
            let instead = "the films are watched as they are made, and nothing can be played";
            stage.progress.say(format!("  {problem}: {instead}"));
            Ok((Vec::new(), Some(watch_reels(&world, videos, &stage.progress)?)))
        }
        files => Ok((files?, None)),
    }
}

fn add(index: &Index, files: &[Utf8PathBuf], videos: &[VideoId], progress: &Progress) -> anyhow::Result<Added> {
    let options = AddOptions { tags: vec![SPLIT.to_owned()] };
    let added = shown(progress, "embedding", || {
        if files.is_empty() {
            index.add_stored(videos, &options, progress)
        } else {
            index.add_files(files, &options, progress)
        }
    })?;
    shown(progress, "making it fast", || index.settle(Settling::WhenWorthIt, progress))?;
    Ok(added)
}

/// The split whose videos are indexed.
pub(super) fn split(stage: &Stage) -> anyhow::Result<Split> {
    let file = world(stage).join("splits").join(format!("{SPLIT}.jsonl"));
    Ok(read_truth(&Source::new(file), None, &ReadOptions::default())?)
}

/// The index as JSON.
pub(super) fn as_json(stage: &Stage) -> anyhow::Result<Value> {
    let Some(index) = &stage.index else { return Ok(Value::Null) };
    let url = index.engine().url().to_string();
    Ok(json!({ "index": url, "encoder": index.manifest().encoder, "status": index.engine().status()? }))
}

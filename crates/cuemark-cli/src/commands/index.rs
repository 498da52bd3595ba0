//! `cuemark index`: make a collection of videos searchable and keep it so.

use camino::Utf8PathBuf;
use clap::Subcommand;
use cuemark_core::{Progress, VideoId, printable};
use cuemark_search::{AddOptions, EngineUrl, Index, Marking, Settling, VideoState, encoder, salvage};
use serde_json::json;

use crate::commands::index_eval;
use crate::input::Force;
use crate::output::{self, Outcome, Print, thousands};
use crate::progress;
use crate::watching::watched;

/// Make a collection of videos searchable and keep it so.
#[derive(Debug, Subcommand)]
pub(crate) enum Action {
    /// Make an empty index, and add what is named.
    Create {
        #[command(flatten)]
        index: IndexArg,
        /// What makes the embeddings: `concepts` (works on any video, needs `cuemark weights pull i3d efficientnet-lite0
        /// minilm` once), `clip` or `clip:FOLDER` with its weights, or the folder of a trained bi-encoder's run.
        #[arg(long, value_name = "NAME|RUN_DIR", default_value = "concepts")]
        encoder: String,
        #[command(flatten)]
        add: AddArgs,
        #[command(flatten)]
        print: Print,
        #[command(flatten)]
        force: Force,
    },
    /// Add videos; those that are there already are embedded again only when their file has changed.
    ///
    /// Every video is safe once it is counted: Ctrl-C, or worse, loses only the one being embedded, and the same command
    /// goes on where it was.
    Add {
        #[command(flatten)]
        index: IndexArg,
        #[command(flatten)]
        add: AddArgs,
        #[command(flatten)]
        print: Print,
    },
    /// Take videos out.
    Remove {
        #[command(flatten)]
        index: IndexArg,
        /// Their names, as `status --videos` lists them.
        #[arg(required = true, value_name = "VIDEO")]
        videos: Vec<String>,
        #[command(flatten)]
        print: Print,
    },
    /// What is in an index.
    Status {
        #[command(flatten)]
        index: IndexArg,
        /// List the videos.
        #[arg(long)]
        videos: bool,
        #[command(flatten)]
        print: Print,
    },
    /// Read everything, compare it with its checksums, look for the files; exit 1 when something is damaged.
    ///
    /// Nothing is written, so this works on a read-only or full disk and beside a writer.
    Verify {
        #[command(flatten)]
        index: IndexArg,
        /// Derive what makes search fast from scratch, and mark videos whose file has gone (they are not found any more) or
        /// come back.
        #[arg(long)]
        repair: bool,
        #[command(flatten)]
        print: Print,
    },
    /// Give back the room of removed and replaced videos; `status` says how much that is.
    ///
    /// Searching goes on meanwhile. A compaction that is killed leaves the index as it was or as it should be, never between.
    Compact {
        #[command(flatten)]
        index: IndexArg,
        #[command(flatten)]
        print: Print,
    },
    /// Write a sound index from everything that is left of a damaged one, which is only read.
    ///
    /// Says what is kept, what is lost and why, and what had to be assumed where the head of the log or the manifest cannot
    /// be read.
    Salvage {
        /// The folder of the damaged index.
        #[arg(value_name = "INDEX")]
        index: String,
        /// The folder of the new one.
        #[arg(long, value_name = "INDEX")]
        out: String,
        /// What made the embeddings, for an index whose manifest does not say so any more.
        #[arg(long, value_name = "NAME|RUN_DIR")]
        encoder: Option<String>,
        #[command(flatten)]
        print: Print,
        #[command(flatten)]
        force: Force,
    },
    Eval(index_eval::Args),
}

/// Which index.
#[derive(Debug, clap::Args)]
pub(crate) struct IndexArg {
    /// The index: a folder, `file:DIR`, or `milvus://HOST:PORT/COLLECTION`.
    #[arg(value_name = "INDEX")]
    index: String,
    /// What to compute embeddings on: cpu, cuda, cuda:N.
    #[arg(long, value_name = "DEVICE", default_value = "cpu")]
    device: String,
}

impl IndexArg {
    fn url(&self) -> anyhow::Result<EngineUrl> {
        Ok(self.index.parse()?)
    }

    /// Opens the index with the encoder that it names.
    pub(crate) fn open(&self, features: Option<&Utf8PathBuf>) -> anyhow::Result<Index> {
        let url = self.url()?;
        let manifest = Index::manifest_of(&url)?;
        let device = cuemark_tensor::device(&self.device)?;
        let encoder = encoder::open(&manifest.encoder, features.map(Utf8PathBuf::as_path), &device)?;
        Ok(Index::open(&url, encoder)?)
    }
}

/// What to add.
#[derive(Debug, clap::Args)]
pub(crate) struct AddArgs {
    /// Video files, and folders of them.
    #[arg(value_name = "VIDEO")]
    videos: Vec<Utf8PathBuf>,
    /// Add videos by their features in this store instead: they can be found but not played.
    #[arg(long, value_name = "STORE")]
    features: Option<Utf8PathBuf>,
    /// Which videos of the store; all when left out.
    #[arg(long, value_name = "NAME", requires = "features")]
    only: Vec<String>,
    /// Give every added video a tag; may be repeated.
    #[arg(long = "tag", value_name = "TAG")]
    tags: Vec<String>,
}

pub(crate) fn run(action: Action) -> anyhow::Result<Outcome> {
    match action {
        Action::Create { index, encoder, add, print, force } => create(&index, &encoder, &add, print, &force),
        Action::Add { index, add, print } => {
            if add.videos.is_empty() && add.features.is_none() {
                anyhow::bail!("name videos, folders of videos, or a store of features (`--features STORE`)");
            }
            let opened = index.open(add.features.as_ref())?;
            add_all(&opened, &add, print)
        }
        Action::Remove { index, videos, print } => remove(&index, &videos, print),
        Action::Status { index, videos, print } => status(&index, videos, print),
        Action::Verify { index, repair, print } => verify(&index, repair, print),
        Action::Compact { index, print } => compact(&index, print),
        Action::Salvage { index, out, encoder, print, force } => {
            rescue(&index, &out, encoder.as_deref(), print, &force)
        }
        Action::Eval(args) => index_eval::run(&args),
    }
}

fn create(index: &IndexArg, name: &str, add: &AddArgs, print: Print, force: &Force) -> anyhow::Result<Outcome> {
    let device = cuemark_tensor::device(&index.device)?;
    let encoder = encoder::open(name, add.features.as_deref(), &device)?;
    let created = Index::create(&index.url()?, encoder, force.overwrite())?;
    if !add.videos.is_empty() || add.features.is_some() {
        return add_all(&created, add, print);
    }
    let manifest = created.manifest();
    print.result(&manifest, || {
        let fitted = match manifest.calibration.answers {
            0 => "probabilities are a guess: the encoder brings no validation queries".to_owned(),
            answers => format!("probabilities fitted on {} answers", thousands(answers)),
        };
        format!("made {}: {} numbers per moment; {fitted}", index.index, manifest.width)
    })
}

fn add_all(index: &Index, add: &AddArgs, print: Print) -> anyhow::Result<Outcome> {
    let options = AddOptions { tags: add.tags.clone() };
    let progress = Progress::new();
    let added = watched(&progress, || match add.features.as_ref().filter(|_| add.videos.is_empty()) {
        Some(store) => Ok(index.add_stored(&stored_videos(store, &add.only)?, &options, &progress)?),
        None => anyhow::Ok(index.add_files(&add.videos, &options, &progress)?),
    })?;
    let stopped = progress.is_stopped();
    index.settle(Settling::WhenWorthIt, &Progress::new())?;
    let status = index.engine().status()?;
    let outcome = print.result(&json!({ "added": added, "status": status, "stopped": stopped }), || {
        let mut text = format!(
            "{} new, {} changed, {} unchanged, {} left out; {} moments of {} videos in the index",
            thousands(added.new),
            thousands(added.changed),
            thousands(added.unchanged),
            thousands(added.failed),
            thousands(status.moments),
            thousands(status.videos)
        );
        if added.partial > 0 {
            text += &format!("\n{} of them could be read only in part", thousands(added.partial));
        }
        if stopped {
            text += "\nstopped; the same command goes on";
        }
        text
    })?;
    Ok(if added.failed > 0 { outcome.with_problems() } else { outcome })
}

/// The videos of a store, or those of them that were named.
fn stored_videos(store: &Utf8PathBuf, only: &[String]) -> anyhow::Result<Vec<VideoId>> {
    if !only.is_empty() {
        return Ok(only.iter().map(|name| VideoId::new(name.as_str())).collect());
    }
    let source = cuemark_features::open(store, &cuemark_features::OpenOptions::default())?;
    let stream = source.streams().first().map(|stream| (*stream).to_owned()).unwrap_or_default();
    let stream = if source.streams().contains(&"visual") { "visual".to_owned() } else { stream };
    Ok(source.videos(&stream).into_iter().cloned().collect())
}

fn remove(index: &IndexArg, videos: &[String], print: Print) -> anyhow::Result<Outcome> {
    let opened = index.open(None)?;
    let mut missing = Vec::new();
    for video in videos {
        if !opened.engine().remove(&VideoId::new(video.as_str()))? {
            missing.push(video.clone());
        }
    }
    let removed = videos.len() - missing.len();
    let outcome = print.result(&json!({ "removed": removed, "missing": missing }), || {
        let mut text = format!("removed {}", thousands(removed));
        if !missing.is_empty() {
            text += &format!("; not in the index: {}", missing.join(", "));
        }
        text
    })?;
    Ok(if missing.is_empty() { outcome } else { outcome.with_problems() })
}

fn status(index: &IndexArg, list: bool, print: Print) -> anyhow::Result<Outcome> {
    let opened = index.open(None)?;
    let status = opened.engine().status()?;
    let videos = if list { opened.engine().videos()? } else { Vec::new() };
    let mut value =
        json!({ "index": opened.engine().url().to_string(), "manifest": opened.manifest(), "status": status });
    if list {
        value["videos"] = serde_json::to_value(&videos)?;
    }
    print.result(&value, || {
        let mut rows = vec![
            vec!["encoder".to_owned(), opened.manifest().encoder.clone()],
            vec!["videos".to_owned(), thousands(status.videos)],
            vec!["vanished".to_owned(), thousands(status.vanished)],
            vec!["moments".to_owned(), thousands(status.moments)],
            vec!["in the graph".to_owned(), thousands(status.in_graph)],
        ];
        // A server does not say what removed videos still take.
        if status.waste.is_some() {
            rows.push(vec!["dead".to_owned(), thousands(status.dead)]);
        }
        if status.damaged > 0 {
            rows.push(vec!["damaged".to_owned(), format!("{} (see `index verify`)", thousands(status.damaged))]);
        }
        for (what, bytes) in [("on disk", status.bytes), ("of that wasted", status.waste)] {
            rows.extend(bytes.map(|bytes| vec![what.to_owned(), megabytes(bytes)]));
        }
        for entry in &videos {
            let state = if entry.state == VideoState::Vanished { " (vanished)" } else { "" };
            let tags = if entry.tags.is_empty() { String::new() } else { format!(" [{}]", entry.tags.join(", ")) };
            let partial = entry.partial.as_ref().map_or_else(String::new, |partial| format!(" ({partial})"));
            let told = format!("{:.1} s{tags}{state}{partial}", entry.duration);
            rows.push(vec![printable(entry.id.as_str()).into_owned(), printable(&told).into_owned()]);
        }
        output::text_table(&["", ""], &rows)
    })
}

fn megabytes(bytes: u64) -> String {
    format!("{:.1} MB", bytes as f64 / 1e6)
}

fn compact(index: &IndexArg, print: Print) -> anyhow::Result<Outcome> {
    let opened = index.open(None)?;
    let done = progress::stoppable(|progress| opened.compact(progress))?;
    let after = opened.engine().status()?;
    print.result(&json!({ "freed": done.freed, "graph": done.graph, "status": after }), || {
        let mut text = match done.freed {
            0 => "nothing is wasted".to_owned(),
            freed => format!("gave back {} of the log", megabytes(freed)),
        };
        if let Some(graph) = done.graph {
            text += &format!(", made a graph of {}", megabytes(graph));
        }
        format!("{text}; {} are on disk", megabytes(after.bytes.unwrap_or(0)))
    })
}

fn rescue(from: &str, to: &str, encoder: Option<&str>, print: Print, force: &Force) -> anyhow::Result<Outcome> {
    let folder = |name: &str| match name.parse()? {
        EngineUrl::File(folder) => Ok(folder),
        EngineUrl::Milvus { .. } => Err(anyhow::anyhow!("`{name}` is on a server; only folders can be salvaged")),
    };
    let (from, to) = (folder(from)?, folder(to)?);
    let done = progress::stoppable(|progress| salvage(&from, &to, encoder, force.overwrite(), progress))?;
    let outcome = print.result(&done, || {
        let mut lines: Vec<String> = done.assumed.iter().map(|assumed| format!("assumed {assumed}")).collect();
        for lost in &done.lost {
            let video = lost.video.as_ref().map_or_else(|| "a record".to_owned(), |video| format!("`{video}`"));
            lines.push(format!("lost {video} at byte {}: {}", lost.offset, lost.why));
        }
        lines.push(format!(
            "kept {} moments of {} videos in {to}, lost {} records",
            thousands(done.moments),
            thousands(done.videos),
            thousands(done.lost.len())
        ));
        lines.join("\n")
    })?;
    Ok(if done.lost.is_empty() { outcome } else { outcome.with_problems() })
}

fn verify(index: &IndexArg, repair: bool, print: Print) -> anyhow::Result<Outcome> {
    let opened = index.open(None)?;
    let verified = progress::stoppable(|progress| -> cuemark_search::Result<_> {
        let faults = opened.engine().verify(progress)?;
        let verified = opened.look_for_files(if repair { Marking::Mark } else { Marking::Look })?;
        if repair {
            opened.settle(Settling::Anew, progress)?;
        }
        Ok(cuemark_search::Verified { faults, ..verified })
    })?;
    let status = opened.engine().status()?;
    let sound = verified.faults.is_empty();
    let outcome = print.result(&json!({ "sound": sound, "verified": verified, "status": status }), || {
        let mut lines: Vec<String> =
            verified.faults.iter().map(|fault| format!("{}: {}", fault.place, fault.problem)).collect();
        for (what, videos) in
            [("vanished", &verified.vanished), ("back again", &verified.returned), ("changed since", &verified.changed)]
        {
            if !videos.is_empty() {
                let names: Vec<_> = videos.iter().map(|video| printable(video.as_str())).collect();
                lines.push(format!("{what}: {}", names.join(", ")));
            }
        }
        let verdict = if sound { "sound" } else { "damaged" };
        lines.push(format!("{verdict}: {} moments of {} videos", thousands(status.moments), thousands(status.videos)));
        lines.join("\n")
    })?;
    Ok(if sound { outcome } else { outcome.with_problems() })
}

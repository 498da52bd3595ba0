//! `cuemark features`: extract clip features, look at them, convert them, hold two stores against each other or one against what is
//! published.

use std::sync::Arc;

use anyhow::{Context, bail};
use camino::{Utf8Path, Utf8PathBuf};
use clap::Subcommand;
use cuemark_core::ClipLen;
use cuemark_features::{
    ARCHIVES, Archive, Comparison, ConvertOptions, ConvertReport, Durations, FeatureSource, Joined, Layout, Normalise,
    OpenOptions, Pca, Precision, Recipe, Resample, RowTime, StreamSurvey, compare, convert, find_archive, open,
    sample_rows, survey,
};
use cuemark_formats::{Overwrite, Source};
use serde_json::json;

use super::extract;
use crate::input::Force;
use crate::output::{self, Outcome, Print, thousands};
use crate::progress::watched;

/// Videos with something wrong that are named one by one.
const NAMED: usize = 10;

/// Clip features: extract them from videos, look at them, convert them, compare two stores.
#[derive(Debug, Subcommand)]
pub(crate) enum Action {
    /// What is in a store: streams, recipes, rows, widths, and what is wrong; exit 1 when something is.
    Info {
        /// A store of ours, or features in any published layout.
        store: Utf8PathBuf,
        #[command(flatten)]
        source: SourceArgs,
        #[command(flatten)]
        time: TimeArgs,
        #[command(flatten)]
        print: Print,
    },
    /// The feature archives that the field passes round: dataset, extractor, width, rows, layout, where from, licence.
    List {
        /// Of one dataset only.
        #[arg(long, value_name = "NAME")]
        dataset: Option<String>,
        #[command(flatten)]
        print: Print,
    },
    /// Whether a folder or file is a published archive; exit 1 when it is not.
    Check {
        /// The archive, as `features list` names it.
        name: String,
        /// What shall be it.
        path: Utf8PathBuf,
        #[command(flatten)]
        print: Print,
    },
    /// Make a store of video files; stopped work is resumed.
    Extract(extract::Args),
    /// Make a store of features in any layout; stopped work is resumed.
    Convert(Convert),
    /// The cosine of every clip in two stores.
    Compare {
        /// One store.
        a: Utf8PathBuf,
        /// The other.
        b: Utf8PathBuf,
        #[command(flatten)]
        source: SourceArgs,
        /// Videos to list, those with the least cosine first; JSON lists all.
        #[arg(long, value_name = "N", default_value_t = 20)]
        worst: usize,
        #[command(flatten)]
        print: Print,
    },
}

#[derive(Debug, clap::Args)]
pub(crate) struct Convert {
    /// What to convert; several are joined, each with its stream's name: `visual=FILE subtitle=FILE`.
    #[arg(required = true, value_name = "[NAME=]IN")]
    inputs: Vec<String>,
    /// The folder of the new store.
    #[arg(long, value_name = "STORE")]
    out: Utf8PathBuf,
    #[command(flatten)]
    source: SourceArgs,
    #[command(flatten)]
    time: TimeArgs,
    /// What turned the videos into numbers, for the recipe. Default: the name of IN
    #[arg(long, value_name = "NAME")]
    extractor: Option<String>,
    /// Keep this many principal components of every row; the projection is written beside the shards.
    #[arg(long, value_name = "N", conflicts_with = "pca_file")]
    pca: Option<usize>,
    /// Rows to fit the projection on.
    #[arg(long, value_name = "N", default_value_t = 20_000, requires = "pca")]
    pca_rows: usize,
    /// Which rows these are.
    #[arg(long, value_name = "N", default_value_t = 0, requires = "pca")]
    seed: u64,
    /// Use a projection that another conversion wrote.
    #[arg(long, value_name = "FILE")]
    pca_file: Option<Utf8PathBuf>,
    /// Divide every row by its norm, after the projection: l2 as 2D-TAN does, l2-eps as TVR does.
    #[arg(long, value_enum, default_value_t)]
    normalise: Normalise,
    /// Bring videos to another number of rows: cut, mean-bins, mean-bins-if-longer or linspace.
    #[arg(long, value_name = "RULE:ROWS")]
    resample: Option<Resample>,
    /// The digits to keep: f32, or f16 in half the room.
    #[arg(long, value_name = "f16|f32", default_value_t)]
    dtype: Precision,
    #[command(flatten)]
    print: Print,
    #[command(flatten)]
    force: Force,
}

/// How to read what lies at a path.
#[derive(Debug, clap::Args)]
pub(crate) struct SourceArgs {
    /// The layout, where the files do not tell: hdf5, hdf5-files, npy, npy-windows, npz, lmdb, pt, pt-files, bigfile, csv.
    #[arg(long, value_name = "LAYOUT")]
    layout: Option<Layout>,
    /// What the stream of a published layout is called; these hold one, without a name.
    #[arg(long, value_name = "NAME", default_value = "visual")]
    stream: String,
    /// The array to read where a file holds several. Default: features, last_hidden_state, pooler_output, c3d_features
    #[arg(long, value_name = "NAME")]
    array: Option<String>,
    /// What file names carry in front of the video. Default: none, or DiDeMo's `fc7_subsample5_fps25_` when all do
    #[arg(long, value_name = "TEXT")]
    prefix: Option<String>,
    /// Frames of the windows to read where a folder holds windows of several lengths.
    #[arg(long, value_name = "FRAMES")]
    window: Option<usize>,
}

/// What one row of a published layout stands for; our own stores say it themselves.
#[derive(Debug, clap::Args)]
pub(crate) struct TimeArgs {
    /// Row i covers seconds [i S, (i + 1) S).
    #[arg(long, value_name = "S", conflicts_with = "rows_span_duration")]
    clip_length: Option<f64>,
    /// The rows of a video share its duration evenly; needs `--truth`.
    #[arg(long, requires = "truth")]
    rows_span_duration: bool,
    /// A truth file that states the durations.
    #[arg(long, value_name = "FILE")]
    truth: Option<Utf8PathBuf>,
    /// Durations for truth files that state none.
    #[arg(long, value_name = "FILE", requires = "truth")]
    durations: Option<Utf8PathBuf>,
}

impl SourceArgs {
    fn options(&self) -> OpenOptions {
        OpenOptions {
            layout: self.layout,
            stream: self.stream.clone(),
            array: self.array.clone(),
            prefix: self.prefix.clone(),
            window: self.window,
            ..OpenOptions::default()
        }
    }
}

impl TimeArgs {
    /// What rows stand for, and the durations that they may span.
    fn read(&self) -> anyhow::Result<(Option<RowTime>, Arc<Durations>)> {
        if let Some(seconds) = self.clip_length {
            let clip_len = ClipLen::new(seconds);
            let clip_len =
                clip_len.with_context(|| format!("`--clip-length`: {seconds} s is not the length of a clip"))?;
            return Ok((Some(clip_len.into()), Arc::default()));
        }
        let (true, Some(truth)) = (self.rows_span_duration, &self.truth) else { return Ok((None, Arc::default())) };
        let durations =
            self.durations.as_ref().map(|path| cuemark_data::Durations::read(&Source::new(path))).transpose()?;
        let options = cuemark_data::ReadOptions { durations: durations.map(Arc::new), ..Default::default() };
        let split = cuemark_data::read_truth(&Source::new(truth), None, &options)?;
        let videos = split.queries.into_iter().filter_map(|truth| truth.video);
        let durations = videos.filter_map(|video| Some((video.id, video.duration?))).collect();
        Ok((Some(RowTime::SpanDuration), Arc::new(durations)))
    }
}

pub(crate) fn run(action: &Action) -> anyhow::Result<Outcome> {
    match action {
        Action::Info { store, source, time, print } => info(store, source, time, *print),
        Action::List { dataset, print } => list(dataset.as_deref(), *print),
        Action::Check { name, path, print } => check(name, path, *print),
        Action::Extract(args) => extract::run(args),
        Action::Convert(args) => run_convert(args),
        Action::Compare { a, b, source, worst, print } => run_compare([a, b], source, *worst, *print),
    }
}

fn info(store: &Utf8Path, source: &SourceArgs, time: &TimeArgs, print: Print) -> anyhow::Result<Outcome> {
    let (row_time, durations) = time.read()?;
    let source = open(store, &OpenOptions { row_time, durations, ..source.options() })?;
    let found = watched("reading", |progress| survey(source.as_ref(), progress))?;
    let outcome = print.result(&json!({ "streams": found }), || info_text(store, &found))?;
    Ok(if found.iter().all(StreamSurvey::is_sound) { outcome } else { outcome.with_problems() })
}

fn list(dataset: Option<&str>, print: Print) -> anyhow::Result<Outcome> {
    let found: Vec<&Archive> =
        ARCHIVES.iter().filter(|archive| dataset.is_none_or(|dataset| archive.dataset == dataset)).collect();
    if found.is_empty() {
        bail!("no archive is known of dataset `{}`", dataset.unwrap_or_default());
    }
    print.result(&json!({ "archives": found }), || {
        let row = |archive: &&Archive| {
            [
                archive.name,
                archive.dataset,
                archive.extractor,
                &thousands(archive.width),
                &archive.row.to_string(),
                archive.layout.name(),
                archive.files,
                archive.from,
                archive.licence.unwrap_or("not stated"),
            ]
            .map(str::to_owned)
            .to_vec()
        };
        let header = ["name", "dataset", "extractor", "width", "a row is", "layout", "files", "from", "licence"];
        output::table(&header, &found.iter().map(row).collect::<Vec<_>>())
    })
}

fn check(name: &str, path: &Utf8Path, print: Print) -> anyhow::Result<Outcome> {
    let archive = find_archive(name)?;
    let found = watched("reading", |progress| archive.check(path, progress))?;
    let outcome = print.result(&found, || {
        let what = match &found.found {
            Some(stream) => format!("{} of {} rows", thousands(stream.videos), thousands(stream.rows)),
            None => "not read".to_owned(),
        };
        let mut text = format!("{path}: {} `{name}` ({what})\n", if found.is_one() { "is" } else { "is not" });
        text.extend(found.problems.iter().map(|problem| format!("WRONG: {problem}\n")));
        text
    })?;
    Ok(if found.is_one() { outcome } else { outcome.with_problems() })
}

fn info_text(store: &Utf8Path, found: &[StreamSurvey]) -> String {
    let row = |stream: &StreamSurvey| {
        let widths: Vec<String> = stream.widths.iter().map(|width| thousands(width.width)).collect();
        let clip = match (stream.clip_seconds, stream.rows_span_duration) {
            (Some(seconds), _) => format!("{seconds} s"),
            (None, true) => "duration / rows".to_owned(),
            (None, false) => "not stated".to_owned(),
        };
        vec![
            stream.stream.clone(),
            stream.layout.clone(),
            thousands(stream.videos),
            thousands(stream.rows),
            format!("{} – {}", thousands(stream.fewest_rows), thousands(stream.most_rows)),
            widths.join(", "),
            clip,
            thousands(stream.zero_rows),
            thousands(stream.bad_rows),
        ]
    };
    let header = ["stream", "layout", "videos", "rows", "per video", "width", "clip", "zero rows", "NaN rows"];
    let table = output::table(&header, &found.iter().map(row).collect::<Vec<_>>());
    let recipes: String = found.iter().map(|stream| recipe_line(&stream.stream, stream.recipe.as_ref())).collect();
    let faults: String = found.iter().flat_map(faults).map(|fault| format!("WRONG: {fault}\n")).collect();
    format!("{store}\n\n{table}\n\n{recipes}{faults}")
}

fn recipe_line(stream: &str, recipe: Option<&Recipe>) -> String {
    let Some(recipe) = recipe else { return format!("{stream}: the layout carries no recipe\n") };
    let mut parts = vec![format!("made by {}", recipe.extractor)];
    parts.extend(recipe.weights.as_ref().map(|weights| format!("weights {weights}")));
    parts.extend(recipe.fps.map(|fps| format!("{fps} frames a second")));
    parts.extend(recipe.resize.map(|[width, height]| format!("pictures of {width} × {height}")));
    parts.extend(recipe.settings.iter().map(|(name, value)| format!("{name} {value}")));
    format!("{stream}: {}\n", parts.join("; "))
}

/// What is wrong with a stream, a line each.
fn faults(stream: &StreamSurvey) -> Vec<String> {
    let StreamSurvey { stream: name, widths, bad, unreadable, .. } = stream;
    let mut lines = Vec::new();
    if widths.len() > 1 {
        let each = widths.iter().map(|width| {
            format!("{} in {} videos, such as `{}`", thousands(width.width), thousands(width.videos), width.example)
        });
        lines.push(format!("{name}: rows of different widths: {}", each.collect::<Vec<_>>().join("; ")));
    }
    lines.extend(bad.iter().take(NAMED).map(|video| {
        format!("{name}: `{}`: {} rows are not finite, the first is row {}", video.video, video.rows, video.first)
    }));
    lines.extend(unreadable.iter().take(NAMED).map(|video| format!("{name}: `{}`: {}", video.video, video.problem)));
    let unnamed = bad.len().saturating_sub(NAMED) + unreadable.len().saturating_sub(NAMED);
    if unnamed > 0 {
        lines.push(format!("{name}: and {} videos more; `--json` lists them", thousands(unnamed)));
    }
    lines
}

fn run_convert(args: &Convert) -> anyhow::Result<Outcome> {
    let source = open_inputs(args)?;
    let overwrite = args.force.overwrite();
    let pca = projection(args, source.as_ref(), overwrite)?;
    let options = ConvertOptions {
        extractor: args.extractor.clone(),
        normalise: args.normalise,
        resample: args.resample,
        precision: args.dtype,
        overwrite,
        pca: pca.clone(),
    };
    let report = watched("converting", |progress| convert(source.as_ref(), &args.out, &options, progress))?;
    let kept =
        pca.as_ref().map(|pca| json!({ "components": pca.components(), "kept": pca.kept(), "rows": pca.rows() }));
    let told = json!({ "store": args.out, "converted": report, "pca": kept });
    args.print.result(&told, || convert_text(args, &report, pca.as_ref()))
}

/// Every input by the name of its stream, joined.
fn open_inputs(args: &Convert) -> anyhow::Result<Arc<dyn FeatureSource>> {
    let (row_time, durations) = args.time.read()?;
    let mut sources = Vec::new();
    for input in &args.inputs {
        let mut options = OpenOptions { row_time, durations: Arc::clone(&durations), ..args.source.options() };
        // A path may hold an equals sign of its own.
        let path = match input.split_once('=') {
            Some((name, path)) if !Utf8Path::new(input).exists() => {
                options.stream = name.to_owned();
                path
            }
            _ => input,
        };
        sources.push(open(Utf8Path::new(path), &options)?);
    }
    match <[_; 1]>::try_from(sources) {
        Ok([only]) => Ok(only),
        Err(several) => Ok(Arc::new(Joined::new(several)?)),
    }
}

/// The projection that was asked for: read, fitted by an earlier run that was stopped, or fitted now.
fn projection(args: &Convert, source: &dyn FeatureSource, overwrite: Overwrite) -> anyhow::Result<Option<Pca>> {
    if let Some(path) = &args.pca_file {
        return Ok(Some(Pca::load(path)?));
    }
    let Some(components) = args.pca else { return Ok(None) };
    let streams = source.streams();
    let [stream] = streams.as_slice() else {
        bail!("`--pca` takes a source of one stream, this one has {}", streams.join(", "));
    };
    let path = args.out.join(format!("{stream}.pca"));
    if overwrite == Overwrite::Never && path.is_file() {
        let pca = Pca::load(&path)?;
        if pca.components() != components {
            bail!("{path} keeps {} components, not {components}", pca.components());
        }
        return Ok(Some(pca));
    }
    let rows = sample_rows(source, stream, args.pca_rows, args.seed)?;
    let pca = Pca::fit(&rows, components).map_err(|problem| anyhow::anyhow!("`--pca`: {problem}"))?;
    pca.save(&path, overwrite)?;
    Ok(Some(pca))
}

fn convert_text(args: &Convert, report: &ConvertReport, pca: Option<&Pca>) -> String {
    let resumed = match report.resumed {
        0 => String::new(),
        videos => format!(", {} of them there already", thousands(videos)),
    };
    let kept = pca.map(|pca| {
        let share = output::percent(pca.kept());
        format!("{} components keep {share} % of the variance of {} rows\n", pca.components(), thousands(pca.rows()))
    });
    format!(
        "{}wrote {} to {}: {} videos{resumed}, {} new rows",
        kept.unwrap_or_default(),
        report.streams.join(" and "),
        args.out,
        thousands(report.videos),
        thousands(report.rows)
    )
}

fn run_compare(paths: [&Utf8PathBuf; 2], source: &SourceArgs, worst: usize, print: Print) -> anyhow::Result<Outcome> {
    let [a, b] = paths.map(|path| open(path, &source.options()));
    let (a, b) = (a?, b?);
    let shared: Vec<&str> = a.streams().into_iter().filter(|stream| b.streams().contains(stream)).collect();
    if shared.is_empty() {
        bail!("no stream in common: {} and {}", a.streams().join(", "), b.streams().join(", "));
    }
    let compared = watched("comparing", |progress| {
        let compared = shared.iter().map(|stream| compare(a.as_ref(), b.as_ref(), stream, progress));
        compared.collect::<Result<Vec<Comparison>, _>>()
    })?;
    print.result(&json!({ "streams": compared }), || {
        compared.iter().map(|comparison| comparison_text(comparison, worst)).collect::<Vec<_>>().join("\n\n")
    })
}

fn comparison_text(comparison: &Comparison, worst: usize) -> String {
    let cosine = |cosine: Option<f64>| cosine.map_or_else(|| "–".to_owned(), |cosine| format!("{cosine:.4}"));
    let mut videos: Vec<_> = comparison.videos.iter().collect();
    videos.sort_by(|a, b| a.min.unwrap_or(2.0).total_cmp(&b.min.unwrap_or(2.0)));
    let rows = videos.iter().take(worst).map(|video| {
        let clip = video.min_clip.map_or_else(|| "–".to_owned(), thousands);
        vec![video.video.to_string(), thousands(video.clips), cosine(video.mean), cosine(video.min), clip]
    });
    let table = output::table(&["video", "clips", "mean", "least", "at clip"], &rows.collect::<Vec<_>>());
    let Comparison { stream, clips, mean, min, zero_in_both, beyond, only_first, only_second, .. } = comparison;
    format!(
        "{stream}: mean cosine {}, least {}, over {} clips of {} videos\n\
         left out: {} clips that are zero in both, {} that one store lacks; {} videos only in A, {} only in B\n\n{table}",
        cosine(*mean),
        cosine(*min),
        thousands(*clips),
        thousands(videos.len()),
        thousands(*zero_in_both),
        thousands(*beyond),
        thousands(*only_first),
        thousands(*only_second),
    )
}

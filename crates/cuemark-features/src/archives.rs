//! The feature archives that the field passes round, and whether a folder or file is one of them.
//!
//! What is known of each is what its authors' repositories and papers say; a licence is named where one is stated.

use camino::Utf8Path;
use cuemark_core::nearest::nearest;
use cuemark_core::{ClipLen, Progress, VideoId};
use serde::Serialize;

use crate::layouts::detect;
use crate::{FeatureError, Layout, OpenOptions, Result, RowTime, StreamSurvey, open, survey};

/// One published archive.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
pub struct Archive {
    /// What it is called here, in run files too (`features/NAME`).
    pub name: &'static str,
    /// The dataset whose videos or queries it covers.
    pub dataset: &'static str,
    /// What made the numbers.
    pub extractor: &'static str,
    /// Numbers per row.
    pub width: usize,
    /// What one row stands for.
    pub row: Row,
    /// How it is laid out.
    #[serde(serialize_with = "by_name")]
    pub layout: Layout,
    /// The file or files, as they are published.
    pub files: &'static str,
    /// What every key begins with; empty where nothing is common to all.
    pub keys: &'static str,
    /// Videos or queries that it holds; `None` where nobody says.
    pub count: Option<usize>,
    /// Where it is to be had: the repository that links to it.
    pub from: &'static str,
    /// Under which licence; `None` where none is stated.
    pub licence: Option<&'static str>,
}

/// What one row of an archive stands for.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Row {
    /// So many **seconds**.
    Seconds(f64),
    /// An even share of the video's duration.
    Share,
    /// One word or token of a query.
    Word,
}

impl std::fmt::Display for Row {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::Seconds(seconds) => write!(f, "{seconds} s"),
            Self::Share => f.write_str("duration / rows"),
            Self::Word => f.write_str("a word"),
        }
    }
}

fn by_name<S: serde::Serializer>(layout: &Layout, serializer: S) -> std::result::Result<S::Ok, S::Error> {
    serializer.serialize_str(layout.name())
}

const PLAIN: Archive = Archive {
    name: "",
    dataset: "",
    extractor: "",
    width: 0,
    row: Row::Share,
    layout: Layout::Hdf5,
    files: "",
    keys: "",
    count: None,
    from: "",
    licence: None,
};

/// Every archive that we know of, by dataset.
pub static ARCHIVES: &[Archive] = &[
    Archive {
        name: "charades-i3d",
        dataset: "charades-sta",
        extractor: "I3D RGB, Kinetics-400, 24 frames of 24 a second",
        width: 1024,
        row: Row::Seconds(1.0),
        layout: Layout::Npy,
        files: "VIDEO.npy",
        from: "26hzhang/VSLNet",
        ..PLAIN
    },
    Archive {
        name: "charades-vgg",
        dataset: "charades-sta",
        extractor: "VGG-16",
        width: 4096,
        files: "vgg_rgb_features.hdf5",
        from: "microsoft/VideoX (2D-TAN)",
        ..PLAIN
    },
    Archive {
        name: "charades-i3d-ms-sl",
        dataset: "charades-sta",
        extractor: "I3D RGB",
        width: 1024,
        layout: Layout::BigFile,
        files: "feature.bin, shape.txt, id.txt, video2frames.txt",
        from: "HuiGuanLab/ms-sl",
        ..PLAIN
    },
    Archive {
        name: "activitynet-c3d",
        dataset: "activitynet-captions",
        extractor: "C3D, Sports-1M, PCA to 500",
        width: 500,
        files: "sub_activitynet_v1-3.c3d.hdf5, [VIDEO][c3d_features]",
        keys: "v_",
        from: "the ActivityNet challenge",
        ..PLAIN
    },
    Archive {
        name: "activitynet-i3d-ms-sl",
        dataset: "activitynet-captions",
        extractor: "I3D RGB",
        width: 1024,
        layout: Layout::BigFile,
        files: "feature.bin, shape.txt, id.txt, video2frames.txt",
        from: "HuiGuanLab/ms-sl",
        ..PLAIN
    },
    Archive {
        name: "tacos-c3d",
        dataset: "tacos",
        extractor: "C3D fc6, windows of 64 frames every 12",
        width: 4096,
        files: "tall_c3d_features.hdf5",
        from: "microsoft/VideoX (2D-TAN)",
        ..PLAIN
    },
    Archive {
        name: "tacos-c3d-windows",
        dataset: "tacos",
        extractor: "C3D fc6, windows of 64, 128, 256 and 512 frames",
        width: 4096,
        layout: Layout::NpyWindows,
        files: "VIDEO.avi_START_END.npy",
        from: "jiyanggao/TALL",
        ..PLAIN
    },
    Archive {
        name: "didemo-vgg",
        dataset: "didemo",
        extractor: "VGG-16 fc7, every 5th of 25 frames a second",
        width: 4096,
        row: Row::Seconds(0.2),
        layout: Layout::Hdf5Files,
        files: "fc7_subsample5_fps25_VIDEO.h5, [features]",
        from: "LisaAnne/LocalizingMoments",
        licence: Some("BSD 2-Clause (repository)"),
        ..PLAIN
    },
    Archive {
        name: "didemo-vgg-chunks",
        dataset: "didemo",
        extractor: "VGG-16 fc7, mean of each chunk",
        width: 4096,
        row: Row::Seconds(5.0),
        files: "average_fc7.h5",
        from: "LisaAnne/LocalizingMoments",
        licence: Some("BSD 2-Clause (repository)"),
        ..PLAIN
    },
    Archive {
        name: "youcook2-s3d",
        dataset: "youcook2",
        extractor: "S3D MIL-NCE, HowTo100M, joint space",
        width: 512,
        layout: Layout::Npy,
        files: "VIDEO.npy",
        from: "snuviplab/MoLEF",
        licence: Some("MIT (repository)"),
        ..PLAIN
    },
    Archive {
        name: "msr-vtt-c3d",
        dataset: "msr-vtt",
        extractor: "C3D fc6",
        width: 4096,
        layout: Layout::Npy,
        files: "VIDEO.npy",
        from: "snuviplab/MoLEF",
        licence: Some("MIT (repository)"),
        ..PLAIN
    },
    Archive {
        name: "tvr-i3d",
        dataset: "tvr",
        extractor: "I3D RGB, Kinetics-600, mean of 1.5 s",
        width: 1024,
        row: Row::Seconds(1.5),
        files: "tvr_i3d_rgb600_avg_cl-1.5.h5",
        from: "jayleicn/TVRetrieval",
        licence: Some("MIT (repository)"),
        ..PLAIN
    },
    Archive {
        name: "tvr-resnet-i3d",
        dataset: "tvr",
        extractor: "ResNet-152 (largest of 1.5 s) beside I3D RGB (mean), each of length 1",
        width: 3072,
        row: Row::Seconds(1.5),
        files: "tvr_resnet152_rgb_max_i3d_rgb600_avg_cat_cl-1.5.h5",
        from: "jayleicn/TVRetrieval",
        licence: Some("MIT (repository)"),
        ..PLAIN
    },
    Archive {
        name: "tvr-subtitles",
        dataset: "tvr",
        extractor: "RoBERTa, fine-tuned on TVR, largest over the words of 1.5 s",
        width: 768,
        row: Row::Seconds(1.5),
        files: "tvr_sub_pretrained_w_sub_query_max_cl-1.5.h5",
        from: "jayleicn/TVRetrieval",
        licence: Some("MIT (repository)"),
        ..PLAIN
    },
    Archive {
        name: "tvr-query-roberta",
        dataset: "tvr",
        extractor: "RoBERTa, fine-tuned on TVR, last hidden state",
        width: 768,
        row: Row::Word,
        files: "an HDF5 file by desc_id",
        from: "jayleicn/TVRetrieval",
        licence: Some("MIT (repository)"),
        ..PLAIN
    },
    Archive {
        name: "tvr-resnet-slowfast",
        dataset: "tvr",
        extractor: "ResNet-152 beside SlowFast R50",
        width: 4352,
        row: Row::Seconds(1.5),
        layout: Layout::Lmdb,
        files: "an LMDB folder, MessagePack maps with `features`",
        from: "houzhijian/CONQUER",
        ..PLAIN
    },
    Archive {
        name: "tvr-ranking-query-bert",
        dataset: "tvr-ranking",
        extractor: "BERT base, last hidden state",
        width: 768,
        row: Row::Word,
        files: "an HDF5 file by query id",
        from: "the TVR-Ranking repository",
        ..PLAIN
    },
    Archive {
        name: "qvhighlights-slowfast",
        dataset: "qvhighlights",
        extractor: "SlowFast R50 8×8, Kinetics-400",
        width: 2304,
        row: Row::Seconds(2.0),
        layout: Layout::Npz,
        files: "VIDEO.npz, [features]",
        from: "jayleicn/moment_detr",
        licence: Some("MIT (repository)"),
        ..PLAIN
    },
    Archive {
        name: "qvhighlights-clip",
        dataset: "qvhighlights",
        extractor: "CLIP ViT-B/32",
        width: 512,
        row: Row::Seconds(2.0),
        layout: Layout::Npz,
        files: "VIDEO.npz, [features]",
        from: "jayleicn/moment_detr",
        licence: Some("MIT (repository)"),
        ..PLAIN
    },
    Archive {
        name: "qvhighlights-clip-text",
        dataset: "qvhighlights",
        extractor: "CLIP's text encoder, last hidden state",
        width: 512,
        row: Row::Word,
        layout: Layout::Npz,
        files: "qidNUMBER.npz, [last_hidden_state]",
        keys: "qid",
        from: "jayleicn/moment_detr",
        licence: Some("MIT (repository)"),
        ..PLAIN
    },
];

/// The archive of this name.
///
/// # Errors
/// When there is none; the likest name is in the message.
pub fn find_archive(name: &str) -> Result<&'static Archive> {
    let unknown = || FeatureError::NoArchive {
        name: name.to_owned(),
        nearest: nearest(name, ARCHIVES.iter().map(|archive| archive.name)).map(str::to_owned),
    };
    ARCHIVES.iter().find(|archive| archive.name == name).ok_or_else(unknown)
}

/// What was found where an archive was expected.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct ArchiveCheck {
    /// The archive.
    pub archive: &'static str,
    /// What lies there; `None` when it is laid out otherwise and was not read.
    pub found: Option<StreamSurvey>,
    /// What speaks against it, in words; none when it is the archive.
    pub problems: Vec<String>,
}

impl ArchiveCheck {
    /// Whether it is the archive.
    pub fn is_one(&self) -> bool {
        self.problems.is_empty()
    }
}

impl Archive {
    /// Whether what lies at `path` is this archive: its layout, keys, widths and numbers. Converted to a store of ours it still is,
    /// when what a row stands for is what the archive's rows stand for.
    ///
    /// # Errors
    /// When nothing is there, or it cannot be opened at all, or it was stopped.
    pub fn check(&'static self, path: &Utf8Path, progress: &Progress) -> Result<ArchiveCheck> {
        let mut problems = Vec::new();
        let layout = detect(path)?;
        if layout != self.layout && layout != Layout::Safetensors {
            problems.push(format!("it is laid out as `{layout}`, the archive as `{}`", self.layout));
            return Ok(ArchiveCheck { archive: self.name, found: None, problems });
        }
        let row_time = match self.row {
            Row::Seconds(seconds) => ClipLen::new(seconds).map(RowTime::Clip),
            // Nothing below asks how long a row is.
            Row::Share | Row::Word => ClipLen::new(1.0).map(RowTime::Clip),
        };
        let source = open(path, &OpenOptions { layout: Some(layout), row_time, ..OpenOptions::default() })?;
        let mut streams = survey(source.as_ref(), progress)?;
        if streams.len() > 1 {
            let names: Vec<&str> = streams.iter().map(|stream| stream.stream.as_str()).collect();
            problems.push(format!("it holds the streams {}; an archive is one", names.join(", ")));
        }
        let Some(stream) = (!streams.is_empty()).then(|| streams.remove(0)) else {
            problems.push("it holds nothing".to_owned());
            return Ok(ArchiveCheck { archive: self.name, found: None, problems });
        };
        let keys = source.videos(&stream.stream);
        problems.extend(self.against(&stream, &keys, layout));
        Ok(ArchiveCheck { archive: self.name, found: Some(stream), problems })
    }

    fn against(&self, stream: &StreamSurvey, keys: &[&VideoId], layout: Layout) -> Vec<String> {
        let mut problems = Vec::new();
        let what = if self.row == Row::Word { "queries" } else { "videos" };
        if stream.videos == 0 {
            problems.push(format!("it holds no {what}"));
        }
        for width in stream.widths.iter().filter(|width| width.width != self.width) {
            let (count, found, wanted) = (width.videos, width.width, self.width);
            problems.push(format!("{count} {what}, such as `{}`, are {found} wide instead of {wanted}", width.example));
        }
        if let Some(key) = keys.iter().find(|key| !key.as_str().starts_with(self.keys)) {
            problems.push(format!("`{key}` does not begin with `{}`", self.keys));
        }
        if let Some(count) = self.count.filter(|count| *count != stream.videos) {
            problems.push(format!("{} {what} instead of {count}", stream.videos));
        }
        if let (Layout::Safetensors, Row::Seconds(wanted), found) = (layout, self.row, stream.clip_seconds)
            && found.is_none_or(|found| (found - wanted).abs() > 1e-6)
        {
            let found = found.map_or_else(|| "another time".to_owned(), |found| format!("{found} s"));
            problems.push(format!("a row stands for {found} instead of {wanted} s"));
        }
        if let Some(bad) = stream.bad.first() {
            problems.push(format!("`{}` holds a number that is not finite, first in row {}", bad.video, bad.first));
        }
        if let Some(unreadable) = stream.unreadable.first() {
            let count = stream.unreadable.len();
            problems.push(format!("{count} cannot be read, such as `{}`: {}", unreadable.video, unreadable.problem));
        }
        problems
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use camino::Utf8PathBuf;
    use cuemark_formats::Overwrite;

    use super::*;
    use crate::{Features, Recipe, StoreWriter, VideoFeatures};

    fn store(folder: &Utf8Path, width: usize, seconds: f64, value: f32) -> Utf8PathBuf {
        let recipe = Recipe {
            extractor: "made up".to_owned(),
            weights: None,
            fps: None,
            row_time: RowTime::Clip(ClipLen::new(seconds).unwrap()),
            width,
            resize: None,
            settings: BTreeMap::new(),
        };
        let path = folder.join(format!("store-{width}-{seconds}"));
        let writer = StoreWriter::create(&path, BTreeMap::from([("visual".to_owned(), recipe)]), Overwrite::Force);
        let features = Features::new(3, width, vec![value; 3 * width]).unwrap();
        let streams = vec![("visual".to_owned(), features)];
        writer.unwrap().write_shard(0, &[VideoFeatures { video: "friends_s01".into(), streams }]).unwrap();
        path
    }

    #[test]
    fn names_are_told_apart_and_a_misspelt_one_gets_the_likest() {
        let mut names: Vec<&str> = ARCHIVES.iter().map(|archive| archive.name).collect();
        names.sort_unstable();
        assert!(names.windows(2).all(|pair| pair[0] != pair[1]));
        let error = find_archive("tvr-resnet-i3").unwrap_err();
        assert!(matches!(&error, FeatureError::NoArchive { nearest: Some(near), .. } if near == "tvr-resnet-i3d"));
    }

    #[test]
    fn a_store_is_an_archive_by_its_widths_and_the_time_of_its_rows() {
        let folder = tempfile::tempdir().unwrap();
        let folder = Utf8Path::from_path(folder.path()).unwrap();
        let archive = find_archive("tvr-resnet-i3d").unwrap();
        let check = |path: &Utf8Path| archive.check(path, &Progress::new()).unwrap();
        assert!(check(&store(folder, 3072, 1.5, 1.0)).is_one());
        let narrow = check(&store(folder, 1024, 1.5, 1.0)).problems;
        assert_eq!(narrow, ["1 videos, such as `friends_s01`, are 1024 wide instead of 3072"]);
        let slow = check(&store(folder, 3072, 2.0, 1.0)).problems;
        assert_eq!(slow, ["a row stands for 2 s instead of 1.5 s"]);
    }

    #[test]
    fn another_layout_and_other_keys_are_named() {
        let folder = tempfile::tempdir().unwrap();
        let folder = Utf8Path::from_path(folder.path()).unwrap();
        std::fs::write(folder.join("abc.csv"), "1,2\n3,4\n").unwrap();
        let found = find_archive("charades-i3d").unwrap().check(folder, &Progress::new()).unwrap();
        assert_eq!(found.problems, ["it is laid out as `csv`, the archive as `npy`"]);
        let store = store(folder, 512, 2.0, 1.0);
        let found = find_archive("qvhighlights-clip-text").unwrap().check(&store, &Progress::new()).unwrap();
        assert_eq!(found.problems, ["`friends_s01` does not begin with `qid`"]);
    }
}

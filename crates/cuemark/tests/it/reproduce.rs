//! A published result made again, on material of the published layout that is ours: YouCook2's annotations and S3D rows as NumPy files.

use camino::{Utf8Path, Utf8PathBuf};
use cuemark::{Error, Need, Progress, Reproduce, Reproduced, Standing};
use cuemark_core::{Advise as _, Dialect, Rng};
use serde_json::{Map, Value, json};

struct Scene {
    folder: tempfile::TempDir,
}

/// Numbers a row that S3D gives.
const WIDTH: usize = 512;

impl Scene {
    fn new() -> Self {
        Self { folder: tempfile::tempdir().unwrap() }
    }

    fn path(&self, name: &str) -> Utf8PathBuf {
        Utf8Path::from_path(self.folder.path()).unwrap().join(name)
    }

    fn request(&self) -> Reproduce {
        let mut request = Reproduce::new("vslnet", "youcook2");
        request.runs = format!("{}/../../runs", env!("CARGO_MANIFEST_DIR")).into();
        request.root = Some(self.path("annotations"));
        request.features = Some(self.path("youcook2-s3d"));
        request.out = Some(self.path("out"));
        request.set = vec![format!("data.words={}", self.path("glove.txt"))];
        request.set.extend(["model.hidden=16", "model.heads=2", "train.epochs=1", "train.batch=8"].map(str::to_owned));
        request
    }

    /// Twelve videos with two steps each, of which four are for validation.
    fn annotate(&self) {
        std::fs::create_dir_all(self.path("annotations")).unwrap();
        let entry = |n: usize| {
            let step = |k: usize| {
                let start = 10 * k + n % 5;
                json!({ "segment": [start, start + 8], "id": k, "sentence": format!("chop the {} onions", ["red", "white"][k]) })
            };
            let subset = if n.is_multiple_of(3) { "validation" } else { "training" };
            json!({ "duration": 40.0, "subset": subset, "recipe_type": "101", "annotations": [step(0), step(1)] })
        };
        let database: Map<String, Value> = (0..12).map(|n| (format!("video{n:02}"), entry(n))).collect();
        let text = json!({ "database": database }).to_string();
        std::fs::write(self.path("annotations/youcookii_annotations_trainval.json"), text).unwrap();
    }

    fn extract(&self, width: usize) {
        let folder = self.path("youcook2-s3d");
        std::fs::create_dir_all(&folder).unwrap();
        let mut rng = Rng::new(1);
        for n in 0..12 {
            let rows = 20;
            let values: Vec<u8> = (0..rows * width).flat_map(|_| (rng.normal() as f32).to_le_bytes()).collect();
            let mut head = format!("{{'descr': '<f4', 'fortran_order': False, 'shape': ({rows}, {width}), }}");
            while (10 + head.len() + 1) % 64 != 0 {
                head.push(' ');
            }
            head.push('\n');
            let mut file = b"\x93NUMPY\x01\x00".to_vec();
            file.extend(u16::try_from(head.len()).unwrap().to_le_bytes());
            file.extend(head.as_bytes());
            file.extend(values);
            std::fs::write(folder.join(format!("video{n:02}.npy")), file).unwrap();
        }
    }

    fn words(&self) {
        let line = |word: &str| format!("{word} {}\n", vec!["0.25"; 300].join(" "));
        let text: String = ["chop", "the", "red", "white", "onions"].map(line).concat();
        std::fs::write(self.path("glove.txt"), text).unwrap();
    }
}

fn need<'a>(done: &'a Reproduced, what: &str) -> &'a Need {
    done.needs.iter().find(|need| need.what.contains(what)).unwrap_or_else(|| panic!("{what}: {:?}", done.needs))
}

#[test]
fn what_is_missing_is_named_with_where_it_is_to_be_had() {
    let scene = Scene::new();
    let done = scene.request().run(&Progress::new()).unwrap();
    assert!(!done.ready && done.runs.is_empty());
    let annotations = need(&done, "annotations of youcook2");
    assert_eq!(annotations.standing, Standing::Missing);
    assert!(annotations.says.contains("youcookii_annotations_trainval.json"), "{annotations:?}");
    assert!(annotations.from.starts_with("gingsi/coot-videotext"), "{annotations:?}");
    let features = need(&done, "clip features");
    assert_eq!((features.standing, features.from.contains("snuviplab/MoLEF")), (Standing::Missing, true));
    assert!(need(&done, "word vectors").from.contains("GloVe"));
    assert!(!scene.path("out").exists(), "nothing is trained");
}

#[test]
fn what_is_other_than_published_is_said_and_trained_only_when_asked_for() {
    let scene = Scene::new();
    scene.annotate();
    scene.extract(WIDTH);
    scene.words();
    let mut request = scene.request();
    let done = request.run(&Progress::new()).unwrap();
    assert!(!done.ready, "twelve videos are not YouCook2");
    let annotations = need(&done, "annotations");
    assert_eq!(annotations.standing, Standing::Differs);
    assert!(annotations.says.contains("1333") && annotations.says.contains("8 videos"), "{annotations:?}");
    // The archive does not say how many videos it has, so its layout and its width are all there is to hold it to.
    assert_eq!(need(&done, "clip features").standing, Standing::Published);

    request.anyway = true;
    request.check = true;
    assert!(request.run(&Progress::new()).unwrap().runs.is_empty(), "asked to check, it trains nothing");
    request.check = false;
    let done = request.run(&Progress::new()).unwrap();
    let seeds: Vec<u64> = done.runs.iter().map(|run| run.seed).collect();
    assert_eq!(seeds, [0, 1, 2]);
    assert!(done.runs.iter().all(|run| run.steps > 0 && run.folder.join("checkpoints/best.safetensors").is_file()));
    assert_eq!(done.notes[0], "`test` of the papers is `val` here");
    assert!(done.notes[1].contains("chosen on `val`, which is reported too"), "{:?}", done.notes);

    // As MoLEF prints them, table 3.
    let figure = |metric: &str| done.figures.iter().find(|figure| figure.metric == metric).unwrap();
    for (metric, printed) in [("R@1,IoU=0.3", 0.3273), ("R@1,IoU=0.5", 0.2002), ("R@1,IoU=0.7", 0.0942)] {
        let figure = figure(metric);
        assert!((figure.published - printed).abs() < 1e-9, "{figure:?}");
        assert!((figure.ours - figure.published - figure.difference).abs() < 1e-12, "{figure:?}");
        assert!((0.0..=1.0).contains(&figure.ours) && figure.deviation.is_some(), "{figure:?}");
    }
    // Hand-made check of one figure: the share of queries whose first answer overlaps enough, over the three runs.
    assert!((8.0 * 3.0 * figure("R@1,IoU=0.5").ours).fract().abs() < 1e-9, "eight queries, three seeds");

    // A second time nothing is trained anew, and the figures are the same.
    let again = request.run(&Progress::new()).unwrap();
    assert_eq!(again.figures, done.figures);
}

#[test]
fn features_of_another_width_are_not_the_archive() {
    let scene = Scene::new();
    scene.annotate();
    scene.extract(64);
    scene.words();
    let done = scene.request().run(&Progress::new()).unwrap();
    let features = need(&done, "clip features");
    assert_eq!(features.standing, Standing::Differs);
    assert!(features.says.contains("64 wide instead of 512"), "{features:?}");
}

#[test]
fn a_method_without_a_run_file_of_the_dataset_names_those_it_has() {
    let mut request = Reproduce::new("vslnet", "qvhighlights");
    request.runs = format!("{}/../../runs", env!("CARGO_MANIFEST_DIR")).into();
    let refused = request.run(&Progress::new()).unwrap_err();
    let hint = refused.advice_in(Dialect::Terminal).unwrap();
    assert!(matches!(refused, Error::Nothing { .. }) && hint.contains("youcook2"), "{refused}: {hint}");
    let unknown = Reproduce::new("vslnett", "youcook2").run(&Progress::new()).unwrap_err();
    assert!(unknown.to_string().contains("vslnett"), "{unknown}");
}

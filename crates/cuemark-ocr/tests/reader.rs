//! The reader with the published weights, on pictures of ours and on films made of them; and without them.
#![cfg(test)] // so that clippy.toml knows the helpers for tests too

use std::io::Read as _;

use camino::{Utf8Path, Utf8PathBuf};
use cuemark_core::{Advise as _, Dialect, Progress, Rng};
use cuemark_formats::Overwrite;
use cuemark_media::{Ffmpeg, OpenedVideo, Pictures};
use cuemark_ocr::{OcrError, Reader};
use cuemark_testkit::fixture;

const WIDTH: usize = 480;
const HEIGHT: usize = 272;
const WEIGHTS: [&str; 3] = ["detection.onnx", "direction.onnx", "recognition.onnx"];

/// The folder of the weights; `None`, noted, where they have not been pulled.
fn weights() -> Option<Utf8PathBuf> {
    Some(cuemark_testkit::weights("pp-ocrv4")?.join("weights/pp-ocrv4"))
}

fn picture(name: &str) -> Vec<u8> {
    let file = std::fs::File::open(fixture("ocr").join(format!("{name}.rgb.gz"))).unwrap();
    let mut rgb = Vec::new();
    flate2::read::GzDecoder::new(file).read_to_end(&mut rgb).unwrap();
    assert_eq!(rgb.len(), 3 * WIDTH * HEIGHT);
    rgb
}

/// A folder for one test.
fn folder() -> (tempfile::TempDir, Utf8PathBuf) {
    let folder = tempfile::tempdir().unwrap();
    let path = Utf8PathBuf::from_path_buf(folder.path().to_owned()).unwrap();
    (folder, path)
}

/// A film of pictures, each for so many tenths of a second.
fn film(path: &Utf8Path, parts: &[(&str, usize)]) {
    let frames = parts.iter().flat_map(|(name, tenths)| std::iter::repeat_n(picture(name), *tenths));
    let pictures = Pictures { size: [WIDTH, HEIGHT], rate: 10.0 };
    Ffmpeg::on_path().encode(pictures, frames, path, Overwrite::Never, &Progress::new()).unwrap();
}

#[test]
fn pictures_say_what_the_reference_reads_in_them() {
    let Some(weights) = weights() else { return };
    let reader = Reader::open(&weights).unwrap();
    let reference = std::fs::read_to_string(fixture("ocr/reference.tsv")).unwrap();
    for name in ["blank", "first", "second", "title"] {
        let rows = reference.lines().map(|row| row.split('\t').collect::<Vec<_>>());
        let wanted: Vec<Vec<&str>> = rows.filter(|row| row[0] == name).collect();
        let found = reader.picture(&picture(name), WIDTH, HEIGHT).unwrap();
        let texts: Vec<&str> = found.iter().map(|line| line.text.as_str()).collect();
        assert_eq!(texts, wanted.iter().map(|row| row[2]).collect::<Vec<_>>(), "{name}");
        for (line, row) in found.iter().zip(&wanted) {
            let confidence: f32 = row[1].parse().unwrap();
            assert!((line.confidence - confidence).abs() < 1e-3, "{line:?} {row:?}");
            assert!(line.corners.iter().all(|[x, y]| *x <= WIDTH as f32 && *y <= HEIGHT as f32), "{line:?}");
        }
    }
}

#[test]
fn captions_of_a_film_have_their_times() {
    let Some(weights) = weights() else { return };
    let (_guard, folder) = folder();
    let path = folder.join("captions.mp4");
    film(&path, &[("blank", 15), ("first", 10), ("second", 40), ("blank", 12), ("first", 20)]);
    let read = Reader::open(&weights).unwrap().lines(&OpenedVideo::open(&path).unwrap(), &Progress::new()).unwrap();
    assert_eq!(read.partial, None);
    // One for each change of the picture.
    assert_eq!(read.pictures, 5);
    let [first, second] = ["We should have left at dawn.", "Nobody told me about the bridge!"];
    let wanted = [(1.5, 2.5, first), (2.5, 6.5, second), (7.7, 9.7, first)];
    assert_eq!(read.lines.len(), 3, "{:?}", read.lines);
    for (line, (start, end, text)) in read.lines.iter().zip(wanted) {
        // Letters this small come out of the codec with fewer spaces.
        assert_eq!(line.text.replace(' ', ""), text.replace(' ', ""));
        // The film is looked at four times a second.
        assert!((line.span.start() - start).abs() <= 0.3 && (line.span.end() - end).abs() <= 0.3, "{line:?}");
    }
}

#[test]
fn a_caption_on_a_restless_ground_is_read_whole() {
    let Some(weights) = weights() else { return };
    let (_guard, folder) = folder();
    let path = folder.join("restless.mp4");
    let (caption, ground) = (picture("second"), picture("blank"));
    // Squares of four pixels, black or grey, drawn anew for every picture; the letters stand still on them.
    let mut rng = Rng::new(1);
    let frames: Vec<Vec<u8>> = (0..30)
        .map(|_| {
            let across = WIDTH / 4;
            let cells: Vec<u8> = (0..across * HEIGHT / 4).map(|_| if rng.chance(0.5) { 170 } else { 0 }).collect();
            let pixel = |at: usize| {
                let rgb = 3 * at..3 * at + 3;
                let apart =
                    caption[rgb.clone()].iter().zip(&ground[rgb.clone()]).map(|(a, b)| usize::from(a.abs_diff(*b)));
                let cell = cells[at / WIDTH / 4 * across + at % WIDTH / 4];
                if apart.sum::<usize>() > 60 { caption[rgb].to_vec() } else { vec![cell; 3] }
            };
            (0..WIDTH * HEIGHT).flat_map(pixel).collect()
        })
        .collect();
    let pictures = Pictures { size: [WIDTH, HEIGHT], rate: 10.0 };
    Ffmpeg::on_path().encode(pictures, frames.into_iter(), &path, Overwrite::Never, &Progress::new()).unwrap();
    let read = Reader::open(&weights).unwrap().lines(&OpenedVideo::open(&path).unwrap(), &Progress::new()).unwrap();
    // Letters this small on such a ground lose a stroke now and then, so one word of the six may have a slip.
    let words = ["Nobody", "told", "me", "about", "the", "bridge"];
    let right = |text: &str| words.iter().filter(|word| text.contains(**word)).count();
    assert!(read.lines.iter().any(|line| right(&line.text) >= 5), "{:?}", read.lines);
}

#[test]
fn stopped_work_ends_and_a_film_that_is_none_is_refused() {
    let Some(weights) = weights() else { return };
    let reader = Reader::open(&weights).unwrap();
    let (_guard, folder) = folder();
    let (path, broken) = (folder.join("film.mp4"), folder.join("broken.mp4"));
    film(&path, &[("first", 30)]);
    let progress = Progress::new();
    progress.stop();
    let stopped = reader.lines(&OpenedVideo::open(&path).unwrap(), &progress).unwrap_err();
    assert!(stopped.is_stopped(), "{stopped}");
    std::fs::write(&broken, b"no film at all").unwrap();
    assert!(reader.lines(&OpenedVideo::open(&broken).unwrap(), &Progress::new()).is_err());
}

#[test]
fn pictures_of_odd_shapes_are_read_or_refused() {
    let Some(weights) = weights() else { return };
    let reader = Reader::open(&weights).unwrap();
    for (width, height) in [(1, 1), (1, 3000), (3000, 1), (40, 9), (33, 31)] {
        assert_eq!(reader.picture(&vec![128; 3 * width * height], width, height).unwrap(), [], "{width} x {height}");
    }
    assert!(matches!(reader.picture(&[0; 12], 2, 3), Err(OcrError::Picture { .. })));
}

#[test]
fn damaged_weights_are_refused() {
    let Some(weights) = weights() else { return };
    let (_guard, folder) = folder();
    for name in WEIGHTS {
        std::fs::copy(weights.join(name), folder.join(name)).unwrap();
    }
    let whole = std::fs::read(weights.join("direction.onnx")).unwrap();
    std::fs::write(folder.join("direction.onnx"), &whole[..whole.len() / 2]).unwrap();
    assert!(matches!(Reader::open(&folder), Err(OcrError::Unfit { .. })));
    // Another network of the three: it can be built and gives something else.
    std::fs::copy(weights.join("recognition.onnx"), folder.join("direction.onnx")).unwrap();
    let reader = Reader::open(&folder).unwrap();
    let error = reader.picture(&picture("first"), WIDTH, HEIGHT).unwrap_err();
    assert!(error.to_string().contains("direction.onnx"), "{error}");
}

#[test]
fn a_folder_without_weights_says_how_to_get_them() {
    let (_guard, folder) = folder();
    let error = Reader::open(&folder).unwrap_err();
    assert!(error.to_string().contains("detection.onnx"), "{error}");
    assert!(error.advice_in(Dialect::Terminal).unwrap().contains("cuemark weights pull pp-ocrv4"));
    std::fs::write(folder.join("detection.onnx"), b"\x08\x07\xff\xff\xff\xff").unwrap();
    assert!(matches!(Reader::open(&folder), Err(OcrError::Unfit { .. })));
}

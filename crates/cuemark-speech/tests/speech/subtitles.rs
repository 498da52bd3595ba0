//! Lines that somebody wrote down.

use camino::Utf8Path;
use cuemark_core::{Line, Progress};
use cuemark_media::{Ffmpeg, OpenedVideo};
use cuemark_speech::{SubtitleSource, subtitles_of};

use crate::{folder, make};

const SRT: &str =
    "1\n00:00:00,500 --> 00:00:01,500\n<i>Good</i>\nevening.\n\n2\n00:00:02,000 --> 00:00:03,000\nWho is there?\n\n";

fn found(film: &Utf8Path) -> Option<(Vec<Line>, SubtitleSource)> {
    subtitles_of(&OpenedVideo::open(film).unwrap(), &Ffmpeg::on_path(), &Progress::new()).unwrap()
}

fn film(path: &Utf8Path) {
    make(&["-f", "lavfi", "-i", "testsrc=s=64x48:r=10:d=4", "-c:v", "libx264", "-pix_fmt", "yuv420p"], path);
}

#[test]
fn a_file_beside_the_film_is_found_and_read_in_order() {
    let (_guard, root) = folder();
    film(&root.join("a film.mp4"));
    assert_eq!(found(&root.join("a film.mp4")), None);
    std::fs::write(root.join("a film.de.srt"), "1\n00:00:00,500 --> 00:00:01,500\nGuten Abend.\n").unwrap();
    std::fs::write(root.join("a film.en.srt"), SRT).unwrap();
    let (lines, source) = found(&root.join("a film.mp4")).unwrap();
    assert_eq!(source, SubtitleSource::Beside(root.join("a film.en.srt")));
    let said: Vec<(f64, f64, &str)> =
        lines.iter().map(|line| (line.span.start(), line.span.end(), line.text.as_str())).collect();
    assert_eq!(said, [(0.5, 1.5, "Good evening."), (2.0, 3.0, "Who is there?")]);
    assert!(lines.iter().all(|line| line.words.is_empty() && line.confidence == 1.0));
}

#[test]
fn a_broken_file_is_passed_over_and_said_so() {
    let (_guard, root) = folder();
    film(&root.join("film.mp4"));
    std::fs::write(root.join("film.vtt"), "this is no subtitle file").unwrap();
    std::fs::write(root.join("film.srt"), SRT).unwrap();
    let progress = Progress::new();
    let opened = OpenedVideo::open(&root.join("film.mp4")).unwrap();
    let (_, source) = subtitles_of(&opened, &Ffmpeg::on_path(), &progress).unwrap().unwrap();
    assert_eq!(source, SubtitleSource::Beside(root.join("film.srt")));
    assert!(progress.heard()[0].contains("film.vtt: passed over"));
}

#[test]
fn a_stream_in_the_film_is_found_the_english_one_first() {
    let (_guard, root) = folder();
    film(&root.join("plain.mp4"));
    std::fs::write(root.join("a.srt"), "1\n00:00:00,500 --> 00:00:01,500\nGuten Abend.\n").unwrap();
    std::fs::write(root.join("b.srt"), SRT).unwrap();
    let inputs = [root.join("plain.mp4"), root.join("a.srt"), root.join("b.srt")];
    let [plain, german, english] = inputs.each_ref().map(|path| path.as_str());
    let streams = ["-map", "0:v", "-map", "1:s", "-map", "2:s", "-c:v", "copy", "-c:s", "srt"];
    let languages = ["-metadata:s:s:0", "language=ger", "-metadata:s:s:1", "language=eng"];
    let mut arguments = vec!["-i", plain, "-i", german, "-i", english];
    arguments.extend(streams.into_iter().chain(languages));
    make(&arguments, &root.join("film.mkv"));
    let (lines, source) = found(&root.join("film.mkv")).unwrap();
    assert_eq!(source, SubtitleSource::Inside(2));
    assert_eq!(lines[1].text, "Who is there?");
}

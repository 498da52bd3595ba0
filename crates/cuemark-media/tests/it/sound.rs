//! The sound of films.

use camino::Utf8Path;
use cuemark_core::Progress;
use cuemark_media::{Ffmpeg, OpenedVideo, Partial, SOUND_RATE};

use crate::made::{folder, make, make_film};

fn decode(path: &Utf8Path) -> (Vec<f32>, Option<Partial>) {
    let (film, progress, ffmpeg) = (OpenedVideo::open(path).unwrap(), Progress::new(), Ffmpeg::on_path());
    let info = ffmpeg.streams(&film, &progress).unwrap().sound.unwrap();
    let mut sound = ffmpeg.sound(&film, &info, &progress).unwrap();
    let mut samples = Vec::new();
    for piece in sound.by_ref() {
        let piece = piece.unwrap();
        assert!(piece.len() <= SOUND_RATE);
        samples.extend(piece);
    }
    (samples, sound.finish().unwrap())
}

fn loudness(samples: &[f32]) -> f32 {
    (samples.iter().map(|sample| sample * sample).sum::<f32>() / samples.len() as f32).sqrt()
}

#[test]
fn sound_is_one_channel_of_16_000_samples_a_second() {
    let (_guard, root) = folder();
    let path = root.join("tone.mp4");
    // A tone of 400 Hz from second 1 to second 2, in stereo at another rate.
    let tone = "aevalsrc='0.5*sin(2*PI*400*t)*between(t,1,2)|0.5*sin(2*PI*400*t)*between(t,1,2)':s=44100:d=3";
    make(&["-f", "lavfi", "-i", "testsrc=s=64x48:r=10:d=3", "-f", "lavfi", "-i", tone, "-c:a", "aac"], &path);
    let (samples, partial) = decode(&path);
    assert_eq!(partial, None);
    assert!((samples.len() as f64 / SOUND_RATE as f64 - 3.0).abs() < 0.2, "{}", samples.len());
    assert!(loudness(&samples[..14_000]) < 0.01 && loudness(&samples[34_000..46_000]) < 0.01);
    let middle = &samples[18_000..30_000];
    assert!((loudness(middle) - 0.5 / 2f32.sqrt()).abs() < 0.02, "{}", loudness(middle));
    let crossings = middle.windows(2).filter(|pair| pair[0] <= 0.0 && pair[1] > 0.0).count();
    assert!((298..=302).contains(&crossings), "{crossings}");
}

#[test]
fn ffprobe_is_asked_once_of_a_film_that_is_open() {
    let (_guard, root) = folder();
    let path = root.join("film.mp4");
    make_film(&path, 1);
    let (film, progress) = (OpenedVideo::open(&path).unwrap(), Progress::new());
    let nobody = Ffmpeg::in_folder(root.join("nothing here"));
    assert!(nobody.probe(&film, &progress).is_err(), "there is no program to ask, and what failed is not kept");
    let info = Ffmpeg::on_path().probe(&film, &progress).unwrap();
    assert_eq!(nobody.probe(&film, &progress).unwrap(), info);
    assert_eq!(nobody.streams(&film, &progress).unwrap(), Default::default());
    let again = OpenedVideo::open(&path).unwrap();
    assert!(nobody.probe(&again, &progress).is_err(), "who opens it anew looks anew");
}

#[test]
fn sound_that_begins_late_is_heard_late() {
    let (_guard, root) = folder();
    make_film(&root.join("pictures.mp4"), 4);
    make(&["-f", "lavfi", "-i", "sine=f=500:d=2"], &root.join("tone.wav"));
    let (pictures, tone) = (root.join("pictures.mp4"), root.join("tone.wav"));
    let arguments = [
        "-i",
        pictures.as_str(),
        "-itsoffset",
        "1.5",
        "-i",
        tone.as_str(),
        "-map",
        "0:v",
        "-map",
        "1:a",
        "-c:v",
        "copy",
    ];
    make(&arguments, &root.join("late.mkv"));
    let (samples, _) = decode(&root.join("late.mkv"));
    let first = samples.iter().position(|sample| sample.abs() > 0.02).unwrap();
    assert!((first as f64 / SOUND_RATE as f64 - 1.5).abs() < 0.08, "{first}");
}

#[test]
fn a_film_without_sound_has_none_and_a_cut_one_is_partial() {
    let (_guard, root) = folder();
    make_film(&root.join("mute.mp4"), 1);
    let film = OpenedVideo::open(&root.join("mute.mp4")).unwrap();
    assert_eq!(Ffmpeg::on_path().streams(&film, &Progress::new()).unwrap().sound, None);
    make(&["-f", "lavfi", "-i", "sine=f=300:d=20", "-c:a", "aac"], &root.join("whole.mkv"));
    let bytes = std::fs::read(root.join("whole.mkv")).unwrap();
    std::fs::write(root.join("cut.mkv"), &bytes[..bytes.len() / 2]).unwrap();
    let (samples, partial) = decode(&root.join("cut.mkv"));
    let partial = partial.unwrap();
    assert!((5.0..15.0).contains(&partial.read_seconds) && partial.stated_seconds.unwrap() > 19.0, "{partial:?}");
    assert!((samples.len() as f64 / 16_000.0 - partial.read_seconds).abs() < 1e-6);
}

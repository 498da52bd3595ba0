//! Decoding, on films that are made here: their brightness is their time.

use camino::Utf8Path;
use cuemark_core::{Advise as _, Progress};
use cuemark_media::{Decoded, Ffmpeg, Filter, Framing, MediaError, OpenedVideo, Rate, Result, VideoInfo};

use crate::made::{folder, make};

pub(crate) const SMALL: Framing = Framing::Stretch { width: 16, height: 12, filter: Filter::Bilinear };

fn probe(path: &Utf8Path) -> Result<VideoInfo> {
    Ffmpeg::on_path().probe(&OpenedVideo::open(path)?, &Progress::new())
}

/// Decodes to the end, as `info` says.
pub(crate) fn decode(path: &Utf8Path, info: &VideoInfo, rate: Rate) -> Result<Decoded> {
    let (video, progress) = (OpenedVideo::open(path)?, Progress::new());
    Ffmpeg::on_path().frames(&video, info, rate, SMALL, &progress)?.finish()
}

/// A grey film whose luma is 16 + 40 per second, without loss.
fn film(seconds: u32, more: &str) -> String {
    format!("nullsrc=s=64x48:r=10:d={seconds},geq=lum='16+40*T':cb=128:cr=128{more}")
}

/// The time that a picture's brightness says: full-range grey is (luma - 16) * 255 / 219.
fn seen(rgb: &[u8]) -> f64 {
    let mean = rgb.iter().map(|byte| f64::from(*byte)).sum::<f64>() / rgb.len() as f64;
    mean * 219.0 / 255.0 / 40.0
}

fn times(path: &Utf8Path, rate: Rate) -> Vec<(f64, f64)> {
    let (video, progress) = (OpenedVideo::open(path).unwrap(), Progress::new());
    let frames = Ffmpeg::on_path().frames(&video, &probe(path).unwrap(), rate, SMALL, &progress).unwrap();
    frames.map(|frame| frame.map(|frame| (frame.time, seen(&frame.rgb))).unwrap()).collect()
}

const LOSSLESS: [&str; 6] = ["-c:v", "libx264", "-qp", "0", "-pix_fmt", "yuv420p"];

#[test]
fn a_frame_is_the_picture_on_screen_at_its_time() {
    let (_guard, folder) = folder();
    let path = folder.join("film.mp4");
    make(&[["-f", "lavfi", "-i", &film(4, "")].as_slice(), &LOSSLESS].concat(), &path);
    let info = probe(&path).unwrap();
    assert_eq!((info.duration, info.rate, info.size, info.rotation), (Some(4.0), Some(10.0), [64, 48], 0));
    let at_four = times(&path, Rate::PerSecond(4.0));
    assert_eq!(at_four.len(), 16);
    for (n, (time, seen)) in at_four.into_iter().enumerate() {
        assert_eq!(time, n as f64 / 4.0);
        // The frame at 0.25 s is the one that came at 0.2 s.
        let shown = (time * 10.0).floor() / 10.0;
        assert!((seen - shown).abs() < 0.03, "{time}: {seen}, not {shown}");
    }
    let every = times(&path, Rate::EveryFrame);
    assert_eq!(every.len(), 40);
    assert!(
        every
            .iter()
            .enumerate()
            .all(|(n, (time, seen))| { (time - n as f64 / 10.0).abs() < 1e-6 && (seen - time).abs() < 0.03 })
    );
    assert_eq!(times(&path, Rate::PerSecond(20.0)).len(), 80);
    assert_eq!(times(&path, Rate::PerSecond(0.5)).len(), 2);
}

#[test]
fn a_variable_rate_moves_no_frame() {
    let (_guard, folder) = folder();
    let path = folder.join("variable.mkv");
    // No frame comes between seconds 1 and 2.5: the last one stays on screen.
    let gap = film(4, ",select='lt(t,1.05)+gt(t,2.45)'");
    make(&[["-f", "lavfi", "-i", &gap, "-fps_mode", "vfr"].as_slice(), &LOSSLESS].concat(), &path);
    let frames = times(&path, Rate::PerSecond(2.0));
    let shown = [0.0, 0.5, 1.0, 1.0, 1.0, 2.5, 3.0, 3.5];
    assert_eq!(frames.len(), shown.len(), "{frames:?}");
    for ((time, seen), shown) in frames.iter().zip(shown) {
        assert!((seen - shown).abs() < 0.03, "{time}: {seen}, not {shown}");
    }
    let every: Vec<f64> = times(&path, Rate::EveryFrame).iter().map(|(time, _)| *time).collect();
    assert!(every.windows(2).any(|pair| (pair[1] - pair[0] - 1.5).abs() < 0.01), "{every:?}");
}

#[test]
fn the_clock_starts_at_the_first_frame() {
    let (_guard, folder) = folder();
    let path = folder.join("late.mkv");
    let late = film(2, ",setpts=PTS+7/TB");
    make(&[["-f", "lavfi", "-i", &late].as_slice(), &LOSSLESS].concat(), &path);
    let frames = times(&path, Rate::PerSecond(5.0));
    assert_eq!(frames.len(), 10);
    assert!(frames.iter().all(|(time, seen)| (seen - time).abs() < 0.03), "{frames:?}");
}

#[test]
fn pictures_are_turned_cut_and_scaled() {
    let (_guard, folder) = folder();
    let (flat, turned) = (folder.join("flat.mp4"), folder.join("turned.mp4"));
    // 80 x 40, the left half red, the right half blue.
    let halves = "color=red:s=40x40:r=5:d=1[a];color=blue:s=40x40:r=5:d=1[b];[a][b]hstack";
    make(&[["-f", "lavfi", "-i", halves].as_slice(), &LOSSLESS].concat(), &flat);
    make(&["-i", flat.as_str(), "-c", "copy", "-metadata:s:v", "rotate=90"], &turned);
    let framing = Framing::CentreCrop { short_side: 20, crop: 10, filter: Filter::Bicubic };
    let first = |path: &Utf8Path| {
        let (info, video, progress) = (probe(path).unwrap(), OpenedVideo::open(path).unwrap(), Progress::new());
        let mut frames = Ffmpeg::on_path().frames(&video, &info, Rate::EveryFrame, framing, &progress).unwrap();
        (info, frames.next().unwrap().unwrap().rgb)
    };
    let (info, rgb) = first(&flat);
    assert_eq!((info.size, rgb.len()), ([80, 40], 300));
    let red = |rgb: &[u8], x: usize, y: usize| rgb[(y * 10 + x) * 3] > 150 && rgb[(y * 10 + x) * 3 + 2] < 100;
    assert!(red(&rgb, 0, 0) && red(&rgb, 0, 9) && !red(&rgb, 9, 0) && !red(&rgb, 9, 9));
    let (info, rgb) = first(&turned);
    assert_eq!(info.size, [40, 80]);
    assert_eq!(info.rotation.rem_euclid(180), 90);
    // Left and right have become top and bottom, one way or the other.
    assert_eq!(red(&rgb, 0, 0), red(&rgb, 9, 0));
    assert_ne!(red(&rgb, 0, 0), red(&rgb, 0, 9));
}

#[test]
fn files_without_pictures_say_what_they_are() {
    let (_guard, folder) = folder();
    let (sound, empty, text) = (folder.join("sound.wav"), folder.join("empty.mp4"), folder.join("-i.mp4"));
    make(&["-f", "lavfi", "-i", "sine=d=1"], &sound);
    std::fs::write(&empty, "").unwrap();
    std::fs::write(&text, "not a video").unwrap();
    let cover = folder.join("cover.mp3");
    let picture = ["-f", "lavfi", "-i", "color=red:s=16x16:d=0.1", "-map", "0", "-map", "1", "-frames:v", "1"];
    let attached = ["-c:v", "png", "-disposition:v", "attached_pic"];
    make(&[["-f", "lavfi", "-i", "sine=d=1"].as_slice(), &picture, &attached].concat(), &cover);
    let said = |path: &Utf8Path| probe(path).unwrap_err();
    assert_eq!(said(&sound).to_string(), format!("{sound}: has no pictures, only audio"));
    assert_eq!(said(&empty).to_string(), format!("{empty}: is empty: 0 bytes"));
    assert_eq!(said(&cover).to_string(), format!("{cover}: has no moving pictures, only a cover image"));
    let words = said(&text).to_string();
    assert!(words.contains("moov atom") || words.contains("Invalid data"), "{words}");
    assert!(said(&folder).to_string().ends_with("is a folder"));
    assert!(matches!(said(&folder.join("gone.mp4")), MediaError::Io { .. }));
    assert!(said(&text).advice().is_some());
}

#[test]
fn a_cut_or_damaged_file_gives_what_it_has_and_says_what_is_missing() {
    let (_guard, folder) = folder();
    let path = folder.join("whole.ts");
    let moving = ["-f", "lavfi", "-i", "testsrc=s=64x48:r=10:d=8", "-g", "10"];
    make(&[moving.as_slice(), &["-c:v", "libx264", "-pix_fmt", "yuv420p"]].concat(), &path);
    let bytes = std::fs::read(&path).unwrap();
    let whole = probe(&path).unwrap();
    let decode = |path: &Utf8Path, info| decode(path, info, Rate::PerSecond(10.0));
    let decoded = decode(&path, &whole).unwrap();
    assert_eq!((decoded.frames, decoded.is_partial()), (80, false), "{decoded:?}");
    let cut = folder.join("cut.ts");
    std::fs::write(&cut, &bytes[..bytes.len() / 2]).unwrap();
    let half = decode(&cut, &whole).unwrap();
    assert!(half.frames < 70 && half.missing_seconds > 1.0, "{half:?}");
    let mut damaged = bytes.clone();
    damaged[bytes.len() / 3..bytes.len() / 3 * 2].iter_mut().step_by(7).for_each(|byte| *byte ^= 0x5a);
    std::fs::write(&cut, damaged).unwrap();
    let hurt = decode(&cut, &whole).unwrap();
    assert!(hurt.is_partial() && hurt.complaints > 0 && hurt.first_complaint.is_some(), "{hurt:?}");
    std::fs::write(&cut, vec![0x47; 4000]).unwrap();
    let nothing = decode(&cut, &whole).unwrap_err().to_string();
    assert!(nothing.contains("not one frame could be decoded"), "{nothing}");
}

#[test]
fn a_missing_program_is_named_with_ways_to_get_it() {
    let ffmpeg = Ffmpeg::in_folder("/nowhere");
    let error = ffmpeg.check().unwrap_err();
    assert_eq!(error.to_string(), "cannot run `ffmpeg`: it is not installed");
    assert!(error.advice().unwrap().render(cuemark_core::Dialect::Terminal).contains("apt-get install ffmpeg"));
    let (_guard, folder) = folder();
    let path = folder.join("some.mp4");
    std::fs::write(&path, "bytes").unwrap();
    let probed = ffmpeg.probe(&OpenedVideo::open(&path).unwrap(), &Progress::new());
    assert!(matches!(probed, Err(MediaError::Program { program: "ffprobe", .. })));
}

#[test]
fn a_rate_that_cannot_be_is_refused() {
    let (_guard, folder) = folder();
    let path = folder.join("film.mp4");
    make(&[["-f", "lavfi", "-i", &film(1, "")].as_slice(), &LOSSLESS].concat(), &path);
    let info = probe(&path).unwrap();
    for rate in [0.0, -1.0, f64::NAN, f64::INFINITY, 1e9] {
        assert!(decode(&path, &info, Rate::PerSecond(rate)).is_err(), "{rate}");
    }
}

#[test]
fn a_picture_is_taken_and_none_where_there_is_none() {
    let (_guard, folder) = folder();
    let path = folder.join("film.mp4");
    make(&[["-f", "lavfi", "-i", &film(2, "")].as_slice(), &LOSSLESS].concat(), &path);
    let video = OpenedVideo::open(&path).unwrap();
    let at = |seconds| Ffmpeg::on_path().thumbnail(&video, seconds, 64, &Progress::new());
    assert_eq!(&at(1.0).unwrap()[..2], [0xff, 0xd8], "a JPEG begins so");
    assert!(matches!(at(99.0), Err(MediaError::NoPicture { .. })), "{:?}", at(99.0).err());
}

#[test]
fn a_cut_is_as_long_as_asked_and_replaces_nothing() {
    let (_guard, folder) = folder();
    let (path, out) = (folder.join("film.mp4"), folder.join("moment.mkv"));
    make(&[["-f", "lavfi", "-i", &film(4, "")].as_slice(), &LOSSLESS].concat(), &path);
    let cut = |overwrite| {
        let (video, span) = (OpenedVideo::open(&path).unwrap(), cuemark_core::Span::new(1.0, 3.0).unwrap());
        Ffmpeg::on_path().cut(&video, span, &out, overwrite, &Progress::new())
    };
    cut(cuemark_formats::Overwrite::Never).unwrap();
    assert!((probe(&out).unwrap().duration.unwrap() - 2.0).abs() < 0.11);
    assert!(cut(cuemark_formats::Overwrite::Never).is_err());
    cut(cuemark_formats::Overwrite::Force).unwrap();
    assert_eq!(std::fs::read_dir(&folder).unwrap().count(), 2, "nothing unfinished is left");
}

/// Sound that outlasts the pictures makes the container longer; the pictures' own length is the film's.
#[test]
fn a_film_lasts_as_long_as_its_pictures() {
    let (_guard, folder) = folder();
    let path = folder.join("film.mp4");
    let (pictures, sound) = (film(2, ""), "sine=d=5".to_owned());
    make(&["-f", "lavfi", "-i", &pictures, "-f", "lavfi", "-i", &sound, "-c:v", "libx264"], &path);
    let info = probe(&path).unwrap();
    assert_eq!(info.duration, Some(2.0));
    let whole = decode(&path, &info, Rate::PerSecond(10.0)).unwrap();
    assert!(!whole.is_partial() && whole.duration() == 2.0, "{whole:?}");
    let Some(real) = cuemark_testkit::shared("data/videos") else { return };
    for name in ["mmaction2_demo", "univtg_charades", "vtimellm_demo"] {
        let path = real.join(format!("{name}.mp4"));
        let (info, decoded) = (probe(&path).unwrap(), decode(&path, &probe(&path).unwrap(), Rate::EveryFrame).unwrap());
        // The containers of two of them say 10 and 47 ms more.
        assert!((decoded.seconds - info.duration.unwrap()).abs() < 0.005, "{name}: {info:?} {decoded:?}");
        assert!(!decoded.is_partial(), "{name}: {decoded:?}");
    }
}

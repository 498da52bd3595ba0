//! Whether actions can be seen in the features, and in stronger ones better.

use cuemark_core::{Rng, Span, VideoId};
use cuemark_features::sight::{ClipView, Picture, Strength};
use cuemark_world::{Camera, Colour, Event, Film, Frame, Look, Place, Shape, Size, Tempo, Verb, Way};

/// A film of ten seconds in which a red actor does one thing all the time while a blue star stands by.
fn film(verb: Verb, rng: &mut Rng) -> Film {
    let pick = |rng: &mut Rng| (rng.below(Shape::ALL.len()), rng.below(Size::ALL.len()));
    let (shape, size) = pick(rng);
    let actor = Look { colour: Colour::Red, shape: Shape::ALL[shape], size: Size::ALL[size] };
    let bystander = Look { colour: Colour::Blue, shape: Shape::Star, size: Size::Small };
    let home = Place { x: rng.between(15.0, 50.0), y: rng.between(15.0, 35.0) };
    let other = Place { x: rng.between(15.0, 50.0), y: rng.between(15.0, 35.0) };
    let wings = Place { x: if rng.chance(0.5) { -7.0 } else { 71.0 }, ..home };
    let (from, to) = match verb {
        Verb::Enter => (wings, home),
        Verb::Leave => (home, wings),
        Verb::Slide => (home, Place { x: if home.x > 32.0 { 8.0 } else { 56.0 }, ..home }),
        Verb::Meet => (home, Place { x: other.x + if other.x > 32.0 { -11.0 } else { 11.0 }, ..other }),
        Verb::Spin | Verb::Grow | Verb::Jump => (home, home),
    };
    let tempo = if rng.chance(0.5) { Tempo::Slow } else { Tempo::Quick };
    let event = Event {
        verb,
        actor: 0,
        partner: (verb == Verb::Meet).then_some(1),
        span: Span::whole(10.0),
        way: Some(Way::Left),
        tempo: Some(tempo),
        topic: None,
        from,
        to,
    };
    Film {
        video: VideoId::new("test"),
        duration: 10.0,
        actors: vec![actor, bystander],
        homes: vec![home, other],
        events: vec![event],
        lines: Vec::new(),
    }
}

fn clips(film: &Film, rng: &mut Rng) -> Vec<ClipView> {
    let frames: Vec<Frame> = Camera::new(1, 0.03, 0).shoot(film, Rng::new(rng.bits())).collect();
    let pictures: Vec<Picture> = frames.iter().map(Frame::picture).collect();
    pictures.chunks(6).map(ClipView::of).collect()
}

/// Films of each verb.
const EACH: usize = 40;

/// The number of a verb, and what was seen of it.
type Sample = (usize, [ClipView; 3]);

/// Early, middle and late clips of each film: an entrance and an exit look alike in any one of them.
fn samples(seed: u64) -> Vec<Sample> {
    let mut rng = Rng::new(seed);
    let mut samples = Vec::new();
    for (label, verb) in Verb::ALL.into_iter().enumerate() {
        for _ in 0..EACH {
            let clips = clips(&film(verb, &mut rng), &mut rng);
            samples.push((label, [1, 5, 8].map(|clip| clips[clip].clone())));
        }
    }
    samples
}

/// Accuracy of the nearest class mean, every column divided by its spread within the classes.
fn nearest_centroid_accuracy(train: &[Sample], test: &[Sample], strength: Strength) -> f64 {
    let rows = |samples: &[Sample]| {
        let row = |clips: &[ClipView; 3]| clips.iter().flat_map(|clip| clip.seen(strength).to_vec()).collect();
        samples.iter().map(|(label, clips)| (*label, row(clips))).collect::<Vec<(usize, Vec<f32>)>>()
    };
    let (train, test) = (rows(train), rows(test));
    let (classes, width) = (Verb::ALL.len(), 3 * strength.width());
    let mut means = vec![vec![0.0f64; width]; classes];
    for (label, row) in &train {
        means[*label].iter_mut().zip(row).for_each(|(mean, number)| *mean += f64::from(*number) / EACH as f64);
    }
    let mut spread = vec![1e-3f64; width];
    for (label, row) in &train {
        for ((spread, mean), number) in spread.iter_mut().zip(&means[*label]).zip(row) {
            *spread += (f64::from(*number) - mean).powi(2) / train.len() as f64;
        }
    }
    let far = |row: &[f32], mean: &[f64]| -> f64 {
        row.iter().zip(mean).zip(&spread).map(|((a, b), spread)| (f64::from(*a) - b).powi(2) / spread).sum()
    };
    let right = test.iter().filter(|(label, row)| {
        let nearest = (0..classes).min_by(|a, b| far(row, &means[*a]).total_cmp(&far(row, &means[*b])));
        nearest == Some(*label)
    });
    right.count() as f64 / test.len() as f64
}

#[test]
fn stronger_features_tell_actions_apart_and_weak_ones_hardly() {
    let (train, test) = (samples(1), samples(2));
    let accuracy = |strength| nearest_centroid_accuracy(&train, &test, strength);
    let [weak, shape, motion] = Strength::ALL.map(accuracy);
    eprintln!("verb from three clips: weak {weak:.3}, shape {shape:.3}, motion {motion:.3}, chance {:.3}", 1.0 / 7.0);
    assert!(motion > 0.7, "{motion}");
    assert!(weak < 0.45 && motion > weak + 0.3 && motion > shape + 0.15, "{weak} {shape} {motion}");
}

#[test]
fn a_spinning_ball_shows_in_its_motion_and_not_in_its_shape() {
    let mut spinning = film(Verb::Spin, &mut Rng::new(6));
    spinning.actors[0].shape = Shape::Ball;
    let mut standing = spinning.clone();
    standing.events.clear();
    let view = |film: &Film| {
        let frames: Vec<Frame> = Camera::new(1, 0.0, 0).shoot(film, Rng::new(1)).take(6).collect();
        ClipView::of(&frames.iter().map(Frame::picture).collect::<Vec<_>>())
    };
    let (spinning, standing) = (view(&spinning), view(&standing));
    let differences: Vec<f32> = (spinning.seen(Strength::Motion).iter())
        .zip(standing.seen(Strength::Motion))
        .map(|(a, b)| (a - b).abs())
        .collect();
    let (still, moving) = differences.split_at(Strength::Shape.width());
    let largest = |values: &[f32]| values.iter().copied().fold(0.0, f32::max);
    assert!(largest(still) < 0.05 && largest(moving) > 0.1, "{} {}", largest(still), largest(moving));
}

#[test]
fn a_stronger_view_begins_with_the_weaker_one() {
    let mut rng = Rng::new(4);
    let clips = clips(&film(Verb::Spin, &mut rng), &mut rng);
    let motion = clips[3].seen(Strength::Motion);
    for strength in Strength::ALL {
        assert_eq!(clips[3].seen(strength), &motion[..strength.width()]);
        assert_eq!(clips[3].seen(strength).len(), strength.width());
    }
}

#[test]
fn a_clip_without_frames_is_all_zeros() {
    assert!(ClipView::of(&[]).seen(Strength::Motion).iter().all(|number| *number == 0.0));
}

#[test]
fn noise_is_as_strong_as_asked_for() {
    let mut rng = Rng::new(9);
    let mut film = film(Verb::Spin, &mut rng);
    film.actors.clear();
    film.homes.clear();
    film.events.clear();
    let still = |noise: f64| Camera::new(1, noise, 0).shoot(&film, Rng::new(3)).next().unwrap().rgb;
    let (clean, noisy) = (still(0.0), still(0.05));
    let squares: f64 = clean.iter().zip(&noisy).map(|(a, b)| (f64::from(*a) - f64::from(*b)).powi(2)).sum();
    let deviation = (squares / clean.len() as f64).sqrt() / 255.0;
    assert!((deviation - 0.05).abs() < 0.003, "{deviation}");
}

/// What `cuemark world make --videos 24 --length 12 --seed 5` wrote before extraction left this crate: a number that moves here is
/// another feature set. Logarithms may differ in their last bit elsewhere.
#[cfg(all(target_os = "linux", target_arch = "x86_64"))]
#[test]
fn stores_of_a_world_are_what_they_were() {
    let guard = tempfile::tempdir().unwrap();
    let folder = camino::Utf8PathBuf::from_path_buf(guard.path().join("world")).unwrap();
    let options = cuemark_world::WorldOptions { videos: 24, length: 12.0, seed: 5, ..Default::default() };
    cuemark_world::make(&options, &folder, &cuemark_core::Progress::new()).unwrap();
    let before = [0x8d9b_37b7_0d66_5a9b, 0xe400_fdd9_9115_541d, 0xae76_491e_1507_9dd5_u64];
    for (strength, before) in Strength::ALL.into_iter().zip(before) {
        let store =
            cuemark_features::FeatureStore::open(&folder.join(format!("features-{}", strength.name()))).unwrap();
        // FNV-1a over the bytes of all rows, videos by name.
        let rows = store.videos("visual").into_iter().map(|video| store.get(video, "visual").unwrap());
        let bytes = rows.flat_map(|rows| rows.data().iter().flat_map(|x| x.to_le_bytes()).collect::<Vec<u8>>());
        let now =
            bytes.fold(0xcbf2_9ce4_8422_2325_u64, |hash, byte| (hash ^ u64::from(byte)).wrapping_mul(0x100_0000_01b3));
        assert_eq!(now, before, "{strength:?}: {now:x}");
    }
}

//! Every operation against plain loops over the definition.

use candle_core::{Device, Tensor};
use cuemark_core::Rng;

use super::{Activation, DepthwiseConv, Padding, VolumeConv, Window, max_pool};

/// Windows and extents that real networks have: I3D's and C3D's layers, strides that leave a rest, one picture.
fn cases() -> Vec<(Window, [usize; 3])> {
    let each = |kernel, stride, around| Window { kernel, stride, padding: Padding::Each(around) };
    vec![
        (Window::same([7, 7, 7], [2, 2, 2]), [5, 13, 12]),
        (Window::same([3, 3, 3], [1, 1, 1]), [2, 7, 9]),
        (Window::same([3, 3, 3], [2, 2, 2]), [3, 8, 7]),
        (Window::same([1, 3, 3], [1, 2, 2]), [2, 6, 5]),
        (Window::same([2, 2, 2], [2, 2, 2]), [3, 5, 4]),
        (each([3, 3, 3], [1, 1, 1], [1, 1, 1]), [4, 5, 300]),
        (each([2, 2, 2], [2, 2, 2], [0, 1, 1]), [2, 7, 7]),
        (Window::square(5, 2, 2), [1, 9, 10]),
        // Large enough for fewer products: tiles that reach beyond the picture, times that reach beyond the film.
        (Window::same([3, 3, 3], [1, 1, 1]), [4, 14, 15]),
        (Window::square(3, 1, 1), [1, 29, 30]),
        (each([2, 3, 3], [1, 1, 1], [1, 0, 2]), [3, 19, 18]),
        (Window::POINT, [2, 3, 100]),
    ]
}

/// The CPU, and a GPU where there is one.
fn devices() -> Vec<Device> {
    [Some(Device::Cpu), crate::device("cuda").ok()].into_iter().flatten().collect()
}

fn random(rng: &mut Rng, shape: &[usize]) -> (Vec<f32>, Tensor) {
    let values: Vec<f32> = (0..shape.iter().product()).map(|_| rng.normal() as f32).collect();
    (values.clone(), Tensor::from_vec(values, shape, &Device::Cpu).unwrap())
}

/// For each output of each item: its place, and the inputs it reads with their place in the kernel.
type Reads = Vec<(usize, Vec<(usize, usize)>)>;

fn reads(window: Window, input: [usize; 3], batch: usize) -> Reads {
    let length = |axis: usize| match window.padding {
        Padding::Same => input[axis].div_ceil(window.stride[axis]),
        Padding::Each(around) => (input[axis] + 2 * around[axis] - window.kernel[axis]) / window.stride[axis] + 1,
    };
    let before = |axis: usize| match window.padding {
        Padding::Same => {
            let all = ((length(axis) - 1) * window.stride[axis] + window.kernel[axis]) as i64 - input[axis] as i64;
            all.max(0) / 2
        }
        Padding::Each(around) => around[axis] as i64,
    };
    let mut out = Vec::new();
    for item in 0..batch {
        for (t, h, w) in places([length(0), length(1), length(2)]) {
            let mut from = Vec::new();
            for (place, (kt, kh, kw)) in places(window.kernel).into_iter().enumerate() {
                let at = |axis: usize, o: usize, k: usize| (o * window.stride[axis] + k) as i64 - before(axis);
                let (t, h, w) = (at(0, t, kt), at(1, h, kh), at(2, w, kw));
                let inside = |n: i64, axis: usize| n >= 0 && n < input[axis] as i64;
                if inside(t, 0) && inside(h, 1) && inside(w, 2) {
                    let index = ((item * input[0] + t as usize) * input[1] + h as usize) * input[2] + w as usize;
                    from.push((index, place));
                }
            }
            out.push((out.len(), from));
        }
    }
    out
}

fn places(extent: [usize; 3]) -> Vec<(usize, usize, usize)> {
    let [t, h, w] = extent;
    (0..t).flat_map(|t| (0..h).flat_map(move |h| (0..w).map(move |w| (t, h, w)))).collect()
}

fn assert_close(ours: &Tensor, loops: &[f32], what: &str) {
    let ours = ours.flatten_all().unwrap().to_vec1::<f32>().unwrap();
    assert_eq!(ours.len(), loops.len(), "{what}");
    let worst = ours.iter().zip(loops).map(|(a, b)| (a - b).abs()).fold(0.0, f32::max);
    assert!(worst < 1e-3, "{what}: off by {worst}");
}

/// By plain loops: the sum over the window and what is added to it, if anything, cut off at zero and six.
fn convolved(
    (window, input): (Window, [usize; 3]),
    [batch, c_in, c_out]: [usize; 3],
    [x, kernel, bias]: [&[f32]; 3],
    past: &[f32],
) -> Vec<f32> {
    let mut sums: Vec<f32> = Vec::new();
    for (_, from) in reads(window, input, batch) {
        for out in 0..c_out {
            let mut sum = f64::from(bias[out]) + past.get(sums.len()).map_or(0.0, |past| f64::from(*past));
            for (index, place) in &from {
                for channel in 0..c_in {
                    let weight = kernel[(place * c_in + channel) * c_out + out];
                    sum += f64::from(x[index * c_in + channel]) * f64::from(weight);
                }
            }
            sums.push((sum as f32).clamp(0.0, 6.0));
        }
    }
    sums
}

#[test]
fn a_convolution_is_the_sum_over_its_window() {
    crate::set_precision(crate::Precision::F32);
    let mut rng = Rng::new(6);
    for (window, input) in cases() {
        for (batch, c_in, c_out) in [(2, 3, 5), (1, 40, 7), (2, 32, 33)] {
            let ([t, h, w], [kt, kh, kw]) = (input, window.kernel);
            let (x, x_tensor) = random(&mut rng, &[batch, t, h, w, c_in]);
            let (k, kernel) = random(&mut rng, &[kt, kh, kw, c_in, c_out]);
            let (b, bias) = random(&mut rng, &[c_out]);
            let loops = convolved((window, input), [batch, c_in, c_out], [&x, &k, &b], &[]);
            for device in devices() {
                let on = |tensor: &Tensor| tensor.to_device(&device).unwrap();
                let conv = VolumeConv::new(&on(&kernel), &on(&bias), window, Activation::Relu6).unwrap();
                let what = format!("{window:?} on {input:?} x {c_in}, {device:?}");
                assert_close(&conv.forward(&on(&x_tensor)).unwrap(), &loops, &what);
            }
        }
    }
}

#[test]
fn what_went_past_is_added_before_numbers_are_cut_off() {
    crate::set_precision(crate::Precision::F32);
    let mut rng = Rng::new(10);
    for (window, input) in cases() {
        let ([t, h, w], [kt, kh, kw], [batch, c_in, c_out]) = (input, window.kernel, [2, 5, 8]);
        let (x, x_tensor) = random(&mut rng, &[batch, t, h, w, c_in]);
        let (k, kernel) = random(&mut rng, &[kt, kh, kw, c_in, c_out]);
        let (b, bias) = random(&mut rng, &[c_out]);
        for device in devices() {
            let on = |tensor: &Tensor| tensor.to_device(&device).unwrap();
            let conv = VolumeConv::new(&on(&kernel), &on(&bias), window, Activation::Relu6).unwrap();
            let shape = conv.forward(&on(&x_tensor)).unwrap().dims().to_vec();
            let (p, past) = random(&mut rng, &shape);
            let loops = convolved((window, input), [batch, c_in, c_out], [&x, &k, &b], &p);
            let what = format!("{window:?} on {input:?}, {device:?}");
            assert_close(&conv.forward_onto(&on(&x_tensor), &on(&past)).unwrap(), &loops, &what);
            assert!(conv.forward_onto(&on(&x_tensor), &on(&past).narrow(0, 0, 1).unwrap()).is_err());
        }
    }
}

/// Small whole numbers are the same in TF32, and so are their sums: nothing may be off at all.
#[test]
fn a_gpu_that_rounds_loses_nothing_of_small_whole_numbers() {
    let Ok(gpu) = crate::device("cuda") else {
        eprintln!("SKIPPED (no GPU): a_gpu_that_rounds_loses_nothing_of_small_whole_numbers");
        return;
    };
    crate::set_precision(crate::Precision::Tf32);
    let mut rng = Rng::new(9);
    let mut whole = |shape: &[usize]| {
        let values: Vec<f32> = (0..shape.iter().product()).map(|_| rng.below(17) as f32 - 8.0).collect();
        (values.clone(), Tensor::from_vec(values, shape, &gpu).unwrap())
    };
    for (window, input) in cases() {
        for (batch, c_in, c_out) in [(2, 3, 64), (1, 36, 96), (2, 20, 132), (1, 64, 4), (1, 3, 8)] {
            let ([t, h, w], [kt, kh, kw]) = (input, window.kernel);
            let (x, x_tensor) = whole(&[batch, t, h, w, c_in]);
            let (k, kernel) = whole(&[kt, kh, kw, c_in, c_out]);
            let (b, bias) = whole(&[c_out]);
            let sizes = [batch, c_in, c_out];
            let conv = VolumeConv::new(&kernel, &bias, window, Activation::Relu6).unwrap();
            let found = conv.forward(&x_tensor).unwrap();
            let (p, past) = whole(found.dims());
            let onto = conv.forward_onto(&x_tensor, &past).unwrap();
            for (found, past) in [(found, &[][..]), (onto, &p)] {
                let loops = convolved((window, input), sizes, [&x, &k, &b], past);
                let found = found.flatten_all().unwrap().to_vec1::<f32>().unwrap();
                assert!(found == loops, "{window:?} on {input:?}, {c_in} to {c_out}, {} added", past.len());
            }
        }
    }
}

#[test]
fn a_depthwise_convolution_keeps_channels_apart() {
    let mut rng = Rng::new(7);
    for (window, input) in cases() {
        for channels in [3, 70, 128] {
            let [t, h, w] = input;
            let (x, x_tensor) = random(&mut rng, &[2, t, h, w, channels]);
            let [kt, kh, kw] = window.kernel;
            let (k, kernel) = random(&mut rng, &[kt, kh, kw, channels]);
            let (b, bias) = random(&mut rng, &[channels]);
            let mut loops = Vec::new();
            for (_, from) in reads(window, input, 2) {
                loops.extend((0..channels).map(|channel| {
                    let products = from.iter().map(|(index, place)| {
                        f64::from(x[index * channels + channel]) * f64::from(k[place * channels + channel])
                    });
                    ((products.sum::<f64>() + f64::from(b[channel])) as f32).max(0.0)
                }));
            }
            for device in devices() {
                let on = |tensor: &Tensor| tensor.to_device(&device).unwrap();
                let conv = DepthwiseConv::new(&on(&kernel), &on(&bias), window, Activation::Relu).unwrap();
                let what = format!("{window:?} on {input:?} x {channels}, {device:?}");
                assert_close(&conv.forward(&on(&x_tensor)).unwrap(), &loops, &what);
            }
        }
    }
}

#[test]
fn the_largest_in_a_window_never_comes_from_the_padding() {
    let mut rng = Rng::new(8);
    for (window, input) in cases() {
        for channels in [5, 8] {
            let [t, h, w] = input;
            let (x, x_tensor) = random(&mut rng, &[2, t, h, w, channels]);
            // All negative: a zero of the padding would win.
            let (x, x_tensor) = (x.iter().map(|x| x - 10.0).collect::<Vec<_>>(), (x_tensor - 10.0).unwrap());
            let mut loops = Vec::new();
            for (_, from) in reads(window, input, 2) {
                let of = |channel: usize| from.iter().map(move |(index, _)| index * channels + channel);
                loops.extend((0..channels).map(|channel| of(channel).map(|at| x[at]).fold(f32::MIN, f32::max)));
            }
            for device in devices() {
                let x = x_tensor.to_device(&device).unwrap();
                assert_close(&max_pool(&x, window).unwrap(), &loops, &format!("{window:?} on {input:?}, {device:?}"));
            }
        }
    }
}

#[test]
fn shapes_that_do_not_fit_are_refused() {
    let zeros = |shape: &[usize]| Tensor::zeros(shape, candle_core::DType::F32, &Device::Cpu).unwrap();
    let window = Window::square(3, 1, 1);
    let (kernel, bias) = (zeros(&[1, 3, 3, 4, 8]), zeros(&[8]));
    assert!(VolumeConv::new(&zeros(&[1, 5, 3, 4, 8]), &bias, window, Activation::None).is_err());
    assert!(VolumeConv::new(&kernel, &zeros(&[4]), window, Activation::None).is_err());
    let conv = VolumeConv::new(&kernel, &bias, window, Activation::None).unwrap();
    let message = conv.forward(&zeros(&[1, 1, 5, 5, 3])).unwrap_err().to_string();
    assert!(message.contains("3 channels where the kernel reads 4"), "{message}");
    assert!(max_pool(&zeros(&[1, 1, 2, 2, 3]), Window::square(3, 1, 0)).is_err());
}

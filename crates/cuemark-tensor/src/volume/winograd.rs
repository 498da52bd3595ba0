//! Convolutions of three by three places with a quarter of the products.
//! Lavin and Gray, "Fast Algorithms for Convolutional Neural Networks", CVPR 2016, after Winograd.
//!
//! Four by four outputs of a picture read six by six inputs. Seen as polynomials, both sides are evaluated at six points along each
//! axis; there a convolution is 36 products of channels instead of 144, and what they say at the 36 points is turned back. Times are
//! summed as they are. Numbers come out as from the plain sum but for rounding, some twenty times that of the sum itself.

use std::cell::Cell;

use rayon::prelude::*;

use super::lines;
use super::window::Placed;
use crate::matrix::{Into, Matrix, Threads, product_into};
use crate::vectorised;

/// Outputs of a tile along an axis.
const TILE: usize = 4;
/// Inputs that a tile reads along an axis, and points.
const READ: usize = 6;
/// Channels that are turned at once: what fits the registers.
const LANES: usize = 16;
/// Rows of the products of one go, about: more would leave the second-level cache.
const ROWS: usize = 512;
/// Fewer rows are not worth reading four times as many weights.
const FEWEST_ROWS: usize = 48;

type Lanes = [f32; LANES];

thread_local! {
    /// Inputs and products at the points, kept from one layer to the next: fresh memory is cleared page by page, which takes a tenth
    /// of the time of a network. Taken out while it is used, since a thread that waits may be given another layer to work on.
    static SCRATCH: Cell<(Vec<f32>, Vec<f32>)> = const { Cell::new((Vec::new(), Vec::new())) };
}

/// Tiles of an output.
#[derive(Debug, Clone, Copy)]
struct Tiles {
    high: usize,
    wide: usize,
}

impl Tiles {
    fn of(placed: &Placed) -> Self {
        let [_, height, width] = placed.output;
        Self { high: height.div_ceil(TILE), wide: width.div_ceil(TILE) }
    }

    /// Of one picture.
    fn count(self) -> usize {
        self.high * self.wide
    }
}

/// Whether a convolution with this window can be computed so, and pays on inputs of this size.
pub(super) fn pays(placed: &Placed) -> bool {
    let [times, ..] = placed.output;
    placed.window.kernel[1..] == [3, 3]
        && placed.window.stride == [1; 3]
        && times * Tiles::of(placed).count() >= FEWEST_ROWS
}

/// The weights `[times, 3, 3, c_in, c_out]` at the points: `[36, times, c_in, c_out]`.
pub(super) fn turned_weights(weights: &[f32], times: usize) -> Vec<f32> {
    const POINTS: [[f64; 3]; READ] = [
        [1.0 / 4.0, 0.0, 0.0],
        [-1.0 / 6.0, -1.0 / 6.0, -1.0 / 6.0],
        [-1.0 / 6.0, 1.0 / 6.0, -1.0 / 6.0],
        [1.0 / 24.0, 1.0 / 12.0, 1.0 / 6.0],
        [1.0 / 24.0, -1.0 / 12.0, 1.0 / 6.0],
        [0.0, 0.0, 1.0],
    ];
    let channels = weights.len() / (9 * times);
    let mut turned = vec![0.0; READ * READ * times * channels];
    turned.par_chunks_mut(channels).enumerate().for_each(|(place, turned)| {
        let (point, time) = (place / times, place % times);
        let (down, across) = (POINTS[point / READ], POINTS[point % READ]);
        let mut sums = vec![0.0; channels];
        for (at, weights) in weights[9 * time * channels..][..9 * channels].chunks_exact(channels).enumerate() {
            let factor = down[at / 3] * across[at % 3];
            sums.iter_mut().zip(weights).for_each(|(sum, weight)| *sum += factor * f64::from(*weight));
        }
        turned.iter_mut().zip(sums).for_each(|(turned, sum)| *turned = sum as f32);
    });
    turned
}

/// One convolution of an item.
pub(super) struct Quick<'a> {
    pub(super) placed: Placed,
    pub(super) c_in: usize,
    pub(super) c_out: usize,
    /// As [`turned_weights`] has them.
    pub(super) weights: &'a [f32],
    pub(super) bias: &'a [f32],
    pub(super) range: (f32, f32),
}

impl Quick<'_> {
    /// From the item `x` to its output `y`.
    pub(super) fn convolve(&self, x: &[f32], y: &mut [f32]) {
        let [times, height, width] = self.placed.output;
        let picture = height * width * self.c_out;
        let at_once = (ROWS / Tiles::of(&self.placed).count()).clamp(1, times);
        let (mut inputs, mut products) = SCRATCH.take();
        self.turn_input(x, &mut inputs);
        for (first, y) in (0..times).step_by(at_once).zip(y.chunks_mut(at_once * picture)) {
            self.multiply(&inputs, first, y.len() / picture, &mut products);
            self.turn_back(&products, y);
        }
        SCRATCH.set((inputs, products));
    }

    /// The input at the points: `[36, times, tiles, c_in]`.
    fn turn_input(&self, x: &[f32], turned: &mut Vec<f32>) {
        let tiles = Tiles::of(&self.placed);
        let [times, ..] = self.placed.input;
        let line = tiles.wide * self.c_in;
        turned.resize(READ * READ * times * tiles.high * line, 0.0);
        // A line of tiles is written at every point, so it gets a piece of each.
        let mut pieces: Vec<Vec<&mut [f32]>> = (0..times * tiles.high).map(|_| Vec::new()).collect();
        for at_point in turned.chunks_mut(times * tiles.high * line) {
            pieces.iter_mut().zip(at_point.chunks_mut(line)).for_each(|(pieces, piece)| pieces.push(piece));
        }
        pieces.into_par_iter().enumerate().for_each(|(place, mut to)| {
            self.turn_line(x, (place / tiles.high, place % tiles.high), &mut to);
        });
    }

    /// One line of tiles at all points.
    fn turn_line(&self, x: &[f32], (time, down): (usize, usize), to: &mut [&mut [f32]]) {
        let &Self { placed, c_in, .. } = self;
        let [_, height, width] = placed.input;
        let at = |place: usize, axis: usize, within: usize| {
            place.checked_sub(placed.before[axis]).filter(|place| *place < within)
        };
        let lines: [Option<usize>; READ] = std::array::from_fn(|line| at(down * TILE + line, 1, height));
        vectorised(
            #[inline(always)]
            || {
                for tile in 0..Tiles::of(&placed).wide {
                    for first in (0..c_in).step_by(LANES) {
                        let count = LANES.min(c_in - first);
                        let mut read = [[[0.0; LANES]; READ]; READ];
                        for (column, read) in read.iter_mut().enumerate() {
                            let Some(from_w) = at(tile * TILE + column, 2, width) else { continue };
                            for (read, line) in read.iter_mut().zip(lines) {
                                let Some(from_h) = line else { continue };
                                let from = ((time * height + from_h) * width + from_w) * c_in + first;
                                load(read, &x[from..from + count]);
                            }
                            *read = input_at_points(read);
                        }
                        for line in 0..READ {
                            let across = input_at_points(&std::array::from_fn(|column| read[column][line]));
                            for (to, from) in to[line * READ..].iter_mut().zip(&across) {
                                store(from, &mut to[tile * c_in + first..][..count]);
                            }
                        }
                    }
                }
            },
        );
    }

    /// The products of channels for `count` times of the output: `[36, count, tiles, c_out]`.
    fn multiply(&self, inputs: &[f32], first: usize, count: usize, products: &mut Vec<f32>) {
        let &Self { placed, c_in, c_out, .. } = self;
        let tiles = Tiles::of(&placed).count();
        let kernel_t = placed.window.kernel[0];
        products.resize(READ * READ * count * tiles * c_out, 0.0);
        products.par_chunks_mut(count * tiles * c_out).enumerate().for_each(|(point, products)| {
            let inputs = &inputs[point * placed.input[0] * tiles * c_in..];
            let mut into = Into::Replace;
            // The middle first: it is there for every output, the others are not at the film's ends.
            for place_t in (0..kernel_t).map(|place| (place + placed.before[0]) % kernel_t) {
                // Outputs that look at a time of the input, not at what lies before or after it.
                let mut inside = (first..first + count).filter_map(|time| Some((time, placed.at(0, time, place_t)?)));
                let Some((time, from)) = inside.next() else { continue };
                let rows = (1 + inside.count()) * tiles;
                if into == Into::Replace && rows < count * tiles {
                    products.fill(0.0);
                    into = Into::Add;
                }
                let left = Matrix::new(&inputs[from * tiles * c_in..], rows, c_in, c_in, 1);
                let weights = &self.weights[(point * kernel_t + place_t) * c_in * c_out..];
                let right = Matrix::new(weights, c_in, c_out, c_out, 1);
                let to = &mut products[(time - first) * tiles * c_out..];
                product_into(left, right, to, c_out, into, Threads::One);
                into = Into::Add;
            }
            if into == Into::Replace {
                // All of these outputs lie in the padding.
                products.fill(0.0);
            }
        });
    }

    /// From the points to the output, with bias and activation.
    fn turn_back(&self, products: &[f32], y: &mut [f32]) {
        let &Self { placed, c_out, .. } = self;
        let [_, height, width] = placed.output;
        let tiles = Tiles::of(&placed);
        let at_point = products.len() / (READ * READ);
        y.par_chunks_mut(height * width * c_out).enumerate().for_each(|(time, y)| {
            y.par_chunks_mut(TILE * width * c_out).enumerate().for_each(|(down, y)| {
                let first_tile = (time * tiles.high + down) * tiles.wide;
                vectorised(
                    #[inline(always)]
                    || {
                        for tile in 0..tiles.wide {
                            for first in (0..c_out).step_by(LANES) {
                                let count = LANES.min(c_out - first);
                                let from = (first_tile + tile) * c_out + first;
                                let mut turned = [[[0.0; LANES]; READ]; TILE];
                                for column in 0..READ {
                                    let mut points = [[0.0; LANES]; READ];
                                    for (line, points) in points.iter_mut().enumerate() {
                                        let from = (line * READ + column) * at_point + from;
                                        load(points, &products[from..from + count]);
                                    }
                                    for (turned, back) in turned.iter_mut().zip(output_of_points(&points)) {
                                        turned[column] = back;
                                    }
                                }
                                for (turned, y) in turned.iter().zip(y.chunks_mut(width * c_out)) {
                                    let across = output_of_points(turned);
                                    let places = y.chunks_mut(c_out).skip(tile * TILE);
                                    for (y, sums) in places.zip(&across) {
                                        store(sums, &mut y[first..first + count]);
                                    }
                                }
                            }
                        }
                    },
                );
                lines::finish_here(y, self.bias, self.range);
            });
        });
    }
}

/// Six numbers at the points 0, 1, -1, 2, -2 and infinity, turned as the weights' counterpart.
#[inline(always)]
fn input_at_points(x: &[Lanes; READ]) -> [Lanes; READ] {
    [
        lanes(|n| 4.0 * x[0][n] - 5.0 * x[2][n] + x[4][n]),
        lanes(|n| x[3][n] + x[4][n] - 4.0 * (x[1][n] + x[2][n])),
        lanes(|n| x[4][n] - x[3][n] + 4.0 * (x[1][n] - x[2][n])),
        lanes(|n| x[4][n] - x[2][n] + 2.0 * (x[3][n] - x[1][n])),
        lanes(|n| x[4][n] - x[2][n] - 2.0 * (x[3][n] - x[1][n])),
        lanes(|n| 4.0 * x[1][n] - 5.0 * x[3][n] + x[5][n]),
    ]
}

/// Four outputs of what the products say at six points.
#[inline(always)]
fn output_of_points(x: &[Lanes; READ]) -> [Lanes; TILE] {
    [
        lanes(|n| x[0][n] + x[1][n] + x[2][n] + x[3][n] + x[4][n]),
        lanes(|n| x[1][n] - x[2][n] + 2.0 * (x[3][n] - x[4][n])),
        lanes(|n| x[1][n] + x[2][n] + 4.0 * (x[3][n] + x[4][n])),
        lanes(|n| x[1][n] - x[2][n] + 8.0 * (x[3][n] - x[4][n]) + x[5][n]),
    ]
}

#[inline(always)]
fn lanes(number: impl Fn(usize) -> f32) -> Lanes {
    std::array::from_fn(number)
}

/// A length that the compiler knows stays in registers.
#[inline(always)]
fn load(to: &mut Lanes, from: &[f32]) {
    match <&Lanes>::try_from(from) {
        Ok(from) => *to = *from,
        Err(_) => to.iter_mut().zip(from).for_each(|(to, from)| *to = *from),
    }
}

#[inline(always)]
fn store(from: &Lanes, to: &mut [f32]) {
    match <&mut Lanes>::try_from(&mut *to) {
        Ok(to) => *to = *from,
        Err(_) => to.iter_mut().zip(from).for_each(|(to, from)| *to = *from),
    }
}

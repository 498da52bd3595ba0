//! Every sparse computation against the same one on whole maps, written plainly with candle's own operations.

use std::sync::Arc;

use candle_core::{DType, Device, Result, Tensor, Var};
use cuemark_core::Rng;
use proptest::prelude::*;

use super::{LayerPlan, MapLayout, StackPlan, Support, map_conv, map_conv_relu, span_max};

/// Normal numbers, on whichever device the tests run on.
fn draw(rng: &mut Rng, shape: &[usize]) -> Tensor {
    let count = shape.iter().product();
    let numbers: Vec<f32> = (0..count).map(|_| rng.normal() as f32).collect();
    Tensor::from_vec(numbers, shape, &device()).unwrap()
}

/// The GPU, in a build for one and on a machine with one; the CPU otherwise.
fn device() -> Device {
    if cfg!(feature = "cuda") { Device::new_cuda(0).unwrap_or(Device::Cpu) } else { Device::Cpu }
}

fn assert_close(ours: &Tensor, wanted: &Tensor, what: &str) {
    assert_eq!(ours.dims(), wanted.dims(), "{what}");
    let scalar = |x: Tensor| x.to_device(&Device::Cpu).unwrap().to_scalar::<f32>().unwrap();
    let largest = scalar(wanted.abs().unwrap().max_all().unwrap()).max(1e-3);
    let off = scalar((ours - wanted).unwrap().abs().unwrap().max_all().unwrap());
    assert!(off <= 2e-4 * largest, "{what}: off by {off} where numbers reach {largest}");
}

/// `[batch, cells, width]` on a whole map, `[batch, width, clips, clips]`, zeros elsewhere.
fn to_map(x: &Tensor, layout: &MapLayout) -> Result<Tensor> {
    let (batch, _, width) = x.dims3()?;
    let clips = layout.clips();
    let row = |square: usize| layout.number(square / clips, square % clips).map_or(0, |number| number as u32 + 1);
    let rows: Vec<u32> = (0..clips * clips).map(row).collect();
    let padded = Tensor::cat(&[&Tensor::zeros((batch, 1, width), DType::F32, x.device())?, x], 1)?;
    let squares = padded.index_select(&Tensor::new(rows, x.device())?, 1)?;
    squares.transpose(1, 2)?.contiguous()?.reshape((batch, width, clips, clips))
}

/// The valid cells of a whole map, `[batch, cells, width]`.
fn from_map(map: &Tensor, layout: &MapLayout) -> Result<Tensor> {
    let (_, _, clips, _) = map.dims4()?;
    let rows: Vec<u32> = layout.cells().iter().map(|(start, end)| start * clips as u32 + end).collect();
    map.flatten_from(2)?.transpose(1, 2)?.contiguous()?.index_select(&Tensor::new(rows, map.device())?, 1)
}

fn mask(layout: &MapLayout) -> Tensor {
    let numbers: Vec<f32> = layout.mask().into_iter().map(|valid| f32::from(u8::from(valid))).collect();
    Tensor::from_vec(numbers, (1, 1, layout.clips(), layout.clips()), &device()).unwrap()
}

/// One over the rounded number of cells of `mask` under the kernel, 0 where there is none, and the mask after it.
fn weight_and_mask(mask: &Tensor, kernel: usize, padding: usize) -> Result<(Tensor, Tensor)> {
    let ones = Tensor::ones((1, 1, kernel, kernel), DType::F32, mask.device())?;
    let counts = mask.conv2d(&ones, padding, 1, 1, 1)?.round()?;
    let next = counts.gt(0f32)?.to_dtype(DType::F32)?;
    Ok(((&next / counts.maximum(1f32)?)?, next))
}

/// The published stack on whole maps, or the one that keeps to the valid cells.
fn dense_stack(x: &Tensor, layers: &[(Var, Var)], layout: &MapLayout, support: Support) -> Result<Tensor> {
    let kernel = layers[0].0.dim(2)?;
    let mut map = to_map(x, layout)?;
    let mut valid = mask(layout);
    for (number, (weight, bias)) in layers.iter().enumerate() {
        let padding = match support {
            Support::Valid => (kernel - 1) / 2,
            _ if number == 0 => (kernel - 1) * layers.len() / 2,
            _ => 0,
        };
        let (scale, next) = weight_and_mask(&valid, kernel, padding)?;
        let bias = bias.reshape((1, bias.elem_count(), 1, 1))?;
        map = map.conv2d(weight, padding, 1, 1, 1)?.broadcast_add(&bias)?.relu()?.broadcast_mul(&scale)?;
        if support == Support::Valid {
            map = map.broadcast_mul(&valid)?;
        } else {
            valid = next;
        }
    }
    from_map(&map, layout)
}

fn sparse_stack(x: &Tensor, layers: &[(Var, Var)], plan: &StackPlan) -> Result<Tensor> {
    let mut x = x.clone();
    for ((weight, bias), plan) in layers.iter().zip(&plan.layers) {
        x = map_conv_relu(&x, weight, Some(bias), plan, 1)?;
    }
    x.contiguous()?.index_select(&Tensor::new(plan.valid_rows(), x.device())?, 1)
}

/// Results and gradients of both, over a random stack.
fn check_stack(clips: usize, counts: &[usize], kernel: usize, depth: usize, support: Support, seed: u64) {
    let rng = &mut Rng::new(seed);
    let layout = MapLayout::new(clips, counts).unwrap();
    let plan = StackPlan::new(&layout, kernel, depth, support).unwrap();
    let (batch, width) = (2, 3);
    let x = Var::from_tensor(&draw(rng, &[batch, layout.len(), width])).unwrap();
    let layers: Vec<(Var, Var)> = (0..depth)
        .map(|_| {
            let weight = draw(rng, &[width, width, kernel, kernel]);
            (Var::from_tensor(&weight).unwrap(), Var::from_tensor(&draw(rng, &[width])).unwrap())
        })
        .collect();
    let dense_support = if support == Support::Reached { Support::Exact } else { support };
    let dense = dense_stack(&x, &layers, &layout, dense_support).unwrap();
    let sparse = sparse_stack(&x, &layers, &plan).unwrap();
    assert_close(&sparse, &dense, "result");
    let pull = draw(rng, dense.dims());
    let gradients = |y: &Tensor| (y * &pull).unwrap().sum_all().unwrap().backward().unwrap();
    let (wanted, ours) = (gradients(&dense), gradients(&sparse));
    assert_close(ours.get(&x).unwrap(), wanted.get(&x).unwrap(), "gradient of the input");
    for (number, (weight, bias)) in layers.iter().enumerate() {
        let what = format!("layer {number} of {depth}, kernel {kernel}, {clips} clips {counts:?}, {support:?}");
        assert_close(ours.get(weight).unwrap(), wanted.get(weight).unwrap(), &format!("weight of {what}"));
        assert_close(ours.get(bias).unwrap(), wanted.get(bias).unwrap(), &format!("bias of {what}"));
    }
}

#[test]
fn exact_stacks_equal_dense_ones_at_every_depth() {
    for (kernel, depth) in [(3, 1), (3, 2), (3, 4), (5, 1), (5, 3), (5, 4)] {
        check_stack(8, &[7], kernel, depth, Support::Exact, 1);
    }
}

#[test]
fn exact_stacks_equal_dense_ones_where_lengths_come_at_wider_steps() {
    check_stack(16, &[7, 4], 3, 3, Support::Exact, 2);
    check_stack(16, &[3, 2, 2], 5, 2, Support::Exact, 3);
}

#[test]
fn stacks_that_keep_every_reached_cell_equal_dense_ones() {
    check_stack(16, &[3, 2, 2], 3, 3, Support::Reached, 4);
}

#[test]
fn stacks_on_valid_cells_equal_same_padded_masked_ones() {
    check_stack(16, &[7, 4], 5, 3, Support::Valid, 5);
}

#[test]
fn one_masked_convolution_equals_the_dense_one_in_groups() {
    let rng = &mut Rng::new(6);
    let layout = MapLayout::new(12, &[5, 3]).unwrap();
    for (kernel, groups, c_in, c_out) in [(7, 4, 8, 4), (5, 1, 3, 6), (3, 2, 4, 8)] {
        let plan = Arc::new(LayerPlan::same(&layout, kernel).unwrap());
        let x = Var::from_tensor(&draw(rng, &[3, layout.len(), c_in])).unwrap();
        let weight = Var::from_tensor(&draw(rng, &[c_out, c_in / groups, kernel, kernel])).unwrap();
        let map = to_map(&x, &layout).unwrap().conv2d(&weight, (kernel - 1) / 2, 1, 1, groups).unwrap();
        let dense = from_map(&map, &layout).unwrap();
        let sparse = map_conv(&x, &weight, None, &plan, groups).unwrap();
        assert_close(&sparse, &dense, "result");
        let pull = draw(rng, dense.dims());
        let gradients = |y: &Tensor| (y * &pull).unwrap().sum_all().unwrap().backward().unwrap();
        let (wanted, ours) = (gradients(&dense), gradients(&sparse));
        assert_close(ours.get(&x).unwrap(), wanted.get(&x).unwrap(), "gradient of the input");
        assert_close(ours.get(&weight).unwrap(), wanted.get(&weight).unwrap(), "gradient of the weight");
    }
}

/// Wide enough and with enough rows that blocks of rows and of channels begin and end inside.
#[test]
fn blocks_do_not_show() {
    let rng = &mut Rng::new(7);
    let layout = MapLayout::new(16, &[15]).unwrap();
    let plan = Arc::new(LayerPlan::same(&layout, 3).unwrap());
    let x = Var::from_tensor(&draw(rng, &[5, layout.len(), 7])).unwrap();
    let weight = Var::from_tensor(&draw(rng, &[512, 7, 3, 3])).unwrap();
    let dense = from_map(&to_map(&x, &layout).unwrap().conv2d(&weight, 1, 1, 1, 1).unwrap(), &layout).unwrap();
    let sparse = map_conv(&x, &weight, None, &plan, 1).unwrap();
    assert_close(&sparse, &dense, "result");
    let pull = draw(rng, dense.dims());
    let gradients = |y: &Tensor| (y * &pull).unwrap().sum_all().unwrap().backward().unwrap();
    let (wanted, ours) = (gradients(&dense), gradients(&sparse));
    assert_close(ours.get(&x).unwrap(), wanted.get(&x).unwrap(), "gradient of the input");
    assert_close(ours.get(&weight).unwrap(), wanted.get(&weight).unwrap(), "gradient of the weight");
}

#[test]
fn results_do_not_depend_on_the_number_of_threads() {
    let rng = &mut Rng::new(9);
    let layout = MapLayout::new(16, &[15]).unwrap();
    let plan = Arc::new(LayerPlan::same(&layout, 5).unwrap());
    let cpu = |x: Tensor| Var::from_tensor(&x.to_device(&Device::Cpu).unwrap()).unwrap();
    let x = cpu(draw(rng, &[7, layout.len(), 24]));
    let (weight, bias) = (cpu(draw(rng, &[40, 24, 5, 5])), cpu(draw(rng, &[40])));
    let bits = |threads: usize| {
        let pool = rayon::ThreadPoolBuilder::new().num_threads(threads).build().unwrap();
        pool.install(|| {
            let y = map_conv_relu(&x, &weight, Some(&bias), &plan, 1).unwrap();
            let gradients = y.sqr().unwrap().sum_all().unwrap().backward().unwrap();
            let numbers = |x: &Tensor| x.flatten_all().unwrap().to_vec1::<f32>().unwrap();
            let mut all = numbers(&y);
            for of in [&x, &weight, &bias] {
                all.extend(numbers(gradients.get(of).unwrap()));
            }
            all.into_iter().map(f32::to_bits).collect::<Vec<u32>>()
        })
    };
    assert!(bits(1) == bits(3));
}

#[test]
fn shapes_that_do_not_fit_are_refused() {
    let layout = MapLayout::new(4, &[3]).unwrap();
    let plan = Arc::new(LayerPlan::same(&layout, 3).unwrap());
    let zeros = |shape: &[usize]| Tensor::zeros(shape, DType::F32, &device()).unwrap();
    let (x, weight) = (zeros(&[1, 10, 4]), zeros(&[2, 4, 3, 3]));
    assert!(map_conv(&x, &weight, None, &plan, 1).is_ok());
    assert!(map_conv(&zeros(&[1, 9, 4]), &weight, None, &plan, 1).is_err());
    assert!(map_conv(&x, &zeros(&[2, 4, 5, 5]), None, &plan, 1).is_err());
    assert!(map_conv(&x, &weight, None, &plan, 0).is_err());
    assert!(map_conv(&x, &weight, None, &plan, 2).is_err());
    assert!(map_conv(&x, &weight, Some(&zeros(&[3])), &plan, 1).is_err());
    assert!(map_conv(&x.to_dtype(DType::F64).unwrap(), &weight, None, &plan, 1).is_err());
    assert!(span_max(&zeros(&[1, 5, 4]), &Arc::new(layout)).is_err());
}

#[test]
fn an_empty_batch_stays_empty() {
    let layout = MapLayout::new(4, &[3]).unwrap();
    let plan = Arc::new(LayerPlan::same(&layout, 3).unwrap());
    let zeros = |shape: &[usize]| Tensor::zeros(shape, DType::F32, &Device::Cpu).unwrap();
    let y = map_conv(&zeros(&[0, 10, 4]), &zeros(&[2, 4, 3, 3]), None, &plan, 1).unwrap();
    assert_eq!(y.dims(), [0, 10, 2]);
}

#[test]
fn a_span_is_as_high_as_its_highest_clip_and_that_clip_gets_the_gradient() {
    let layout = Arc::new(MapLayout::new(4, &[1, 1]).unwrap());
    assert_eq!(layout.cells(), [(0, 0), (0, 1), (0, 3), (1, 1), (1, 2), (2, 2), (2, 3), (3, 3)]);
    let clips = Tensor::new(&[[[1f32, 5.0], [3.0, 5.0], [2.0, -1.0], [3.0, 7.0]]], &device()).unwrap();
    let clips = Var::from_tensor(&clips).unwrap();
    let map = span_max(&clips, &layout).unwrap();
    let wanted = [[1f32, 5.0], [3.0, 5.0], [3.0, 7.0], [3.0, 5.0], [3.0, 5.0], [2.0, -1.0], [3.0, 7.0], [3.0, 7.0]];
    assert_eq!(map.squeeze(0).unwrap().to_vec2::<f32>().unwrap(), wanted);
    let gradients = map.sum_all().unwrap().backward().unwrap();
    // Ties go to the first: channel 0 of (0, 3) to clip 1 rather than 3, channel 1 of (0, 1) to clip 0.
    let wanted = [[1f32, 2.0], [4.0, 2.0], [1.0, 1.0], [2.0, 3.0]];
    assert_eq!(gradients.get(&clips).unwrap().squeeze(0).unwrap().to_vec2::<f32>().unwrap(), wanted);
}

#[test]
fn span_max_equals_a_plain_loop_over_clips() {
    let rng = &mut Rng::new(8);
    let layout = Arc::new(MapLayout::new(16, &[7, 4]).unwrap());
    let clips = Var::from_tensor(&draw(rng, &[3, 16, 40])).unwrap();
    let plainly: Vec<Tensor> = layout
        .cells()
        .iter()
        .map(|(start, end)| clips.narrow(1, *start as usize, (end - start + 1) as usize).unwrap().max(1).unwrap())
        .collect();
    let plainly = Tensor::stack(&plainly, 1).unwrap();
    let ours = span_max(&clips, &layout).unwrap();
    assert_close(&ours, &plainly, "result");
    let pull = draw(rng, ours.dims());
    let gradients = |y: &Tensor| (y * &pull).unwrap().sum_all().unwrap().backward().unwrap();
    assert_close(gradients(&ours).get(&clips).unwrap(), gradients(&plainly).get(&clips).unwrap(), "gradient");
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(24))]
    #[test]
    fn sparse_stacks_equal_dense_ones_whatever_the_sizes(
        clips in 2usize..11,
        dense_lengths in 1usize..6,
        wider in 0usize..3,
        reach in 1usize..3,
        depth in 1usize..4,
        support in prop::sample::select(vec![Support::Exact, Support::Reached, Support::Valid]),
        seed in any::<u64>(),
    ) {
        let first = dense_lengths.min(clips - 1);
        let room = (clips - 1 - first) / 2;
        let counts = if wider.min(room) > 0 { vec![first, wider.min(room)] } else { vec![first] };
        check_stack(clips, &counts, 2 * reach + 1, depth, support, seed);
    }
}

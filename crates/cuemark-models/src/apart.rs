//! Steps of training whose pairs are read apart from each other, on as many threads as there are.
//!
//! A batch of pairs is cut into parts. Each part goes through the network on a thread of its own; the loss is worked out once, of
//! what all of them gave, so that it is what it would be without parts whatever it means or divides by; its gradient goes back
//! through the parts, again on threads of their own, and the gradients of the parameters are added in the order of the parts. How
//! many parts there are is a matter of the run, never of the machine: no bit of a result depends on the number of threads.

use std::ops::Range;

use candle_core::backprop::GradStore;
use cuemark_tensor::{Pass, Tensor, Var, add_gradients, gradients};
use rayon::prelude::*;

use crate::{Batch, Loss, Model, ModelError, Result, towers};

/// A model that reads every pair of a batch by itself: what it finds for one does not depend on the others. Its loss may.
///
/// Networks that normalise over the batch are none.
pub trait Apart: Sync {
    /// What the network needs of a batch to read these pairs.
    ///
    /// # Errors
    /// Those of the tensor operations.
    fn part(&self, batch: &Batch, pairs: Range<usize>) -> Result<Batch> {
        batch.pairs(pairs)
    }

    /// What the network finds, tensors whose first axis counts the pairs.
    ///
    /// # Errors
    /// As [`Model::loss`].
    fn read(&self, part: &Batch, pass: &Pass) -> Result<Vec<Tensor>>;

    /// The loss, of what it found for all pairs of a batch.
    ///
    /// # Errors
    /// As [`Model::loss`].
    fn judge(&self, found: &[Tensor], batch: &Batch, pass: &Pass) -> Result<Loss>;
}

/// The most parts: as many as keep the cores of a usual machine busy, while each still has pairs enough for its products to be worth
/// their way through memory.
const MOST_PARTS: usize = 8;
/// The fewest pairs of a part.
const FEWEST_PAIRS: usize = 2;
/// Numbers that the gradients of all parts may take together, half a GiB. Networks with more parameters have products that are large
/// enough for threads to share.
const MOST_NUMBERS: usize = 1 << 27;

/// Parameters that keep a thread busy inside of operations, and threads that every step has work for.
const NUMBERS_OF_A_THREAD: usize = 1 << 20;
const FEWEST_THREADS: usize = 4;
/// The same of two networks side by side, whose operations are those of a whole batch: a step of MMN at the world's size takes 45 ms with
/// one thread, 21 with four, 17 with eight, 16 with twelve and no less with sixteen.
const FEWEST_THREADS_OF_TOWERS: usize = 12;

/// How the work of a step is shared out.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Sharing {
    /// Parts in which a batch is read; 1 for methods that cannot read pairs apart, and on a GPU, which is fullest with the whole batch.
    pub parts: usize,
    /// Threads beyond which a step gains nothing.
    pub threads: usize,
}

impl Sharing {
    /// That of a batch of so many pairs: a matter of the method, the batch and the number of weights.
    pub fn of(model: &dyn Model, pairs: usize, parameters: &[Var]) -> Self {
        let numbers: usize = parameters.iter().map(|parameter| parameter.elem_count()).sum();
        let on_cpu = parameters.first().is_some_and(|parameter| parameter.device().is_cpu());
        let parts = match model.apart() {
            Some(_) if on_cpu => (pairs / FEWEST_PAIRS).min(MOST_NUMBERS / numbers.max(1)).clamp(1, MOST_PARTS),
            _ => 1,
        };
        let fewest = if model.towers().is_some() { FEWEST_THREADS_OF_TOWERS } else { FEWEST_THREADS };
        Self { parts, threads: parts.max(numbers / NUMBERS_OF_A_THREAD).max(fewest) }
    }
}

/// The loss of a batch and the gradients of the parameters, read in so many parts ([`Sharing::of`]).
///
/// `ready` makes of a batch, or of a part of it, what the network reads, as looking up word vectors that are learnt.
///
/// # Errors
/// As [`Model::loss`], and those of `ready`.
pub fn differentiate<E: From<ModelError> + Send>(
    model: &dyn Model,
    batch: &Batch,
    pass: &Pass,
    parameters: &[Var],
    parts: usize,
    ready: impl Fn(&Batch, &Pass) -> Result<Batch, E> + Sync,
) -> Result<(Tensor, GradStore), E> {
    let Some(apart) = model.apart().filter(|_| parts > 1) else {
        let batch = ready(batch, pass)?;
        if let Some(towers) = model.towers().filter(|_| batch.videos.visual.device().is_cpu()) {
            return Ok(towers::differentiate(towers, &batch, pass, parameters)?);
        }
        let loss = model.loss(&batch, pass)?.total;
        let gradients = gradients(&loss).map_err(ModelError::from)?;
        return Ok((loss, gradients));
    };
    let ranges = ranges(batch.len(), parts);
    let passes = pass.split(ranges.len());
    let found: Vec<Vec<Tensor>> = ranges
        .par_iter()
        .zip(passes)
        .with_max_len(1)
        .map(|(pairs, pass)| Ok(apart.read(&ready(&apart.part(batch, pairs.clone())?, &pass)?, &pass)?))
        .collect::<Result<_, E>>()?;
    Ok(pull(apart, batch, pass, parameters, &ranges, found)?)
}

/// The loss of what was found, and its gradients back through the parts.
fn pull(
    apart: &dyn Apart,
    batch: &Batch,
    pass: &Pass,
    parameters: &[Var],
    ranges: &[Range<usize>],
    found: Vec<Vec<Tensor>>,
) -> Result<(Tensor, GradStore)> {
    let count = found.first().map_or(0, Vec::len);
    let together = |number: usize| -> Result<Var> {
        let of_parts: Vec<Tensor> = found.iter().map(|found| found[number].detach()).collect();
        Ok(Var::from_tensor(&Tensor::cat(&of_parts, 0)?)?)
    };
    let all = (0..count).map(together).collect::<Result<Vec<_>>>()?;
    let seen: Vec<Tensor> = all.iter().map(|var| var.as_tensor().clone()).collect();
    let loss = apart.judge(&seen, batch, pass)?.total;
    let mut gradients = gradients(&loss)?;
    let pulls: Vec<Option<Tensor>> = all.iter().map(|var| gradients.remove(var)).collect();
    let back = |(found, pairs): (Vec<Tensor>, &Range<usize>)| -> Result<Option<GradStore>> {
        let of_part = |pull: &Option<Tensor>| pull.as_ref().map(|x| x.narrow(0, pairs.start, pairs.len())).transpose();
        pull_back(&found, &pulls.iter().map(of_part).collect::<Result<Vec<_>, _>>()?)
    };
    let of_parts: Vec<Option<GradStore>> =
        found.into_par_iter().zip(ranges).with_max_len(1).map(back).collect::<Result<_>>()?;
    let of_parts: Vec<GradStore> = of_parts.into_iter().flatten().collect();
    add_gradients(parameters, &of_parts, &mut gradients)?;
    Ok((loss, gradients))
}

/// What the gradients of parameters are where those of `found` are `pulls`; `None` where nothing pulls.
pub(crate) fn pull_back(found: &[Tensor], pulls: &[Option<Tensor>]) -> Result<Option<GradStore>> {
    let mut sum: Option<Tensor> = None;
    for (found, pull) in found.iter().zip(pulls) {
        let Some(pull) = pull else { continue };
        let pulled = (found * pull)?.sum_all()?;
        sum = Some(match sum {
            Some(sum) => (sum + pulled)?,
            None => pulled,
        });
    }
    Ok(sum.map(|sum| gradients(&sum)).transpose()?)
}

/// `pairs` in so many stretches that differ in length by one at most.
fn ranges(pairs: usize, parts: usize) -> Vec<Range<usize>> {
    let edge = |part: usize| part * pairs / parts;
    (0..parts).map(|part| edge(part)..edge(part + 1)).filter(|pairs| !pairs.is_empty()).collect()
}

#[cfg(test)]
mod tests {
    use cuemark_core::Rng;
    use cuemark_tensor::{Device, Params};

    use super::*;
    use crate::registry;
    use crate::testing::{TOY, joint_batch};

    /// Methods that read pairs apart, small.
    const METHODS: [(&str, &str); 3] = [
        (
            "2d-tan",
            "map = { pre_clips = 8, clips = 8, counts = [7] }\nhidden = 16\nlstm_layers = 1\nkernel = 3\nlayers = 2",
        ),
        ("tmlga", "clips = 16\nquery_hidden = 10\nwidth = 14\nhidden = 12\ndropout = 0.0"),
        (
            "qd-detr",
            "clips = 12\nwords = 6\nproposals = 5\nnetwork = { hidden = 16, heads = 2, ffn = 24, dropout = 0.0, input_dropout = 0.0 }",
        ),
    ];

    /// Pairs of different lengths.
    fn batch(name: &str) -> Batch {
        let mut batch = if name == "qd-detr" { joint_batch() } else { TOY.batch(1) };
        batch.queries.lengths[1] = 3;
        batch.queries.mask = crate::layers::real_steps(&batch.queries.lengths, TOY.words, &Device::Cpu).unwrap();
        batch
    }

    /// Loss and gradients of one step in so many parts on so many threads.
    fn step(name: &str, settings: &str, pass: Pass, parts: usize, threads: usize) -> (f32, Vec<Vec<f32>>) {
        let params = Params::seeded(1, &Device::Cpu);
        let model =
            registry::find(name).unwrap().build(&settings.parse().unwrap(), &TOY.given(), params.builder()).unwrap();
        let parameters: Vec<Var> = params.trainable().into_iter().map(|(_, var)| var).collect();
        let ready = |batch: &Batch, _: &Pass| Ok::<_, ModelError>(batch.clone());
        let pool = rayon::ThreadPoolBuilder::new().num_threads(threads).build().unwrap();
        let learn = || {
            let pass = pass;
            differentiate(model.as_ref(), &batch(name), &pass, &parameters, parts, ready).unwrap()
        };
        let (loss, gradients) = pool.install(learn);
        let of =
            |var: &Var| gradients.get(var).map(|g| g.flatten_all().unwrap().to_vec1().unwrap()).unwrap_or_default();
        (loss.to_scalar().unwrap(), parameters.iter().map(of).collect())
    }

    #[test]
    fn parts_change_neither_loss_nor_gradients_beyond_rounding() {
        for (name, settings) in METHODS {
            // Nothing is drawn: clips that a loss compares are drawn too.
            let (loss, gradients) = step(name, settings, Pass::answering(), 1, 1);
            assert!(gradients.iter().any(|gradient| gradient.iter().any(|x| x.abs() > 1e-4)), "{name} learns nothing");
            for parts in [2, 3] {
                let (in_parts, of_parts) = step(name, settings, Pass::answering(), parts, 2);
                assert!((loss - in_parts).abs() < 1e-5 * loss.abs().max(1.0), "{name}: {loss} and {in_parts}");
                for (whole, parts) in gradients.iter().zip(&of_parts) {
                    assert_eq!(whole.len(), parts.len(), "{name}");
                    let most = whole.iter().fold(1e-3f32, |most, x| most.max(x.abs()));
                    assert!(whole.iter().zip(parts).all(|(a, b)| (a - b).abs() < 1e-4 * most), "{name}");
                }
            }
        }
    }

    #[test]
    fn no_bit_of_a_step_depends_on_the_number_of_threads() {
        for (name, settings) in METHODS {
            // With dropout, whose draws must not depend on who comes first.
            let settings = settings.replace("dropout = 0.0", "dropout = 0.3");
            let bits = |threads: usize| {
                let (loss, gradients) = step(name, &settings, Pass::training(0, 1, Rng::new(7)), 3, threads);
                (loss.to_bits(), gradients.concat().into_iter().map(f32::to_bits).collect::<Vec<_>>())
            };
            let one = bits(1);
            assert!(one == bits(2) && one == bits(3), "{name}");
        }
    }

    #[test]
    fn large_networks_and_small_batches_are_read_in_fewer_parts() {
        let params = Params::seeded(1, &Device::Cpu);
        let settings = METHODS[0].1.parse().unwrap();
        let model = registry::find("2d-tan").unwrap().build(&settings, &TOY.given(), params.builder()).unwrap();
        let vars = |count: usize| vec![Var::zeros(count, cuemark_tensor::DType::F32, &Device::Cpu).unwrap()];
        let of = |pairs: usize, count: usize| Sharing::of(model.as_ref(), pairs, &vars(count));
        assert_eq!([1, 3, 4, 7, 16, 64].map(|pairs| of(pairs, 10).parts), [1, 1, 2, 3, 8, 8]);
        assert_eq!([1, 16].map(|pairs| of(pairs, 10).threads), [4, 8]);
        assert_eq!(of(64, MOST_NUMBERS / 3), Sharing { parts: 3, threads: 42 });
        assert_eq!(of(64, MOST_NUMBERS + 1).parts, 1);
        assert_eq!(ranges(7, 3), [0..2, 2..4, 4..7]);
        assert_eq!(ranges(2, 3), [0..1, 1..2]);
    }
}

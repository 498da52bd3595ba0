//! Steps of training of two networks side by side, one that reads videos and one that reads sentences.
//!
//! Neither waits for the other until the loss, which compares what both found, and after it both go back at once. Much of either is
//! work that one thread does while the rest look on; side by side one fills the gaps of the other. The loss is of the whole batch.

use candle_core::backprop::GradStore;
use cuemark_tensor::{Device, Pass, Tensor, Var, add_gradients, gradients, step_on_threads};

use crate::apart::pull_back;
use crate::{Batch, Loss, Result};

/// One of so many threads works on sentences alone: about what they take of a step of the published sizes.
const THREADS_OF_SENTENCES: usize = 8;

/// A model of two networks that know nothing of each other, and a loss that compares what they find.
pub trait Towers: Sync {
    /// What one network finds in the videos of a batch.
    ///
    /// # Errors
    /// As [`Model::loss`](crate::Model::loss).
    fn of_videos(&self, batch: &Batch, pass: &Pass) -> Result<Vec<Tensor>>;

    /// What the other finds in its sentences.
    ///
    /// # Errors
    /// As [`Model::loss`](crate::Model::loss).
    fn of_sentences(&self, batch: &Batch, pass: &Pass) -> Result<Vec<Tensor>>;

    /// The loss, of what both found.
    ///
    /// # Errors
    /// As [`Model::loss`](crate::Model::loss).
    fn compare(&self, videos: &[Tensor], sentences: &[Tensor], batch: &Batch, pass: &Pass) -> Result<Loss>;
}

/// The loss of a batch and the gradients of the parameters.
pub(crate) fn differentiate(
    towers: &dyn Towers,
    batch: &Batch,
    pass: &Pass,
    parameters: &[Var],
) -> Result<(Tensor, GradStore)> {
    let mut passes = pass.split(2).into_iter();
    let [first, second] = [(); 2].map(|()| passes.next().unwrap_or_else(Pass::answering));
    let (videos, sentences) =
        side_by_side(move || towers.of_videos(batch, &first), move || towers.of_sentences(batch, &second));
    let found = [videos?, sentences?];
    let cut =
        |found: &Vec<Tensor>| found.iter().map(|x| Ok(Var::from_tensor(&x.detach())?)).collect::<Result<Vec<_>>>();
    let [videos, sentences] = [cut(&found[0])?, cut(&found[1])?];
    let seen = |of: &[Var]| of.iter().map(|var| var.as_tensor().clone()).collect::<Vec<_>>();
    let loss = towers.compare(&seen(&videos), &seen(&sentences), batch, pass)?.total;
    let mut gradients = gradients(&loss)?;
    let mut pulls = |of: &[Var]| of.iter().map(|var| gradients.remove(var)).collect::<Vec<_>>();
    let (of_videos, of_sentences) = (pulls(&videos), pulls(&sentences));
    let (videos, sentences) = side_by_side(|| pull_back(&found[0], &of_videos), || pull_back(&found[1], &of_sentences));
    let of_towers: Vec<GradStore> = [videos?, sentences?].into_iter().flatten().collect();
    add_gradients(parameters, &of_towers, &mut gradients)?;
    Ok((loss, gradients))
}

/// Both at once. With many threads the sentences get some of their own: a thread that waited for the small operations of theirs would
/// take up a piece of a video's convolution meanwhile, each of which takes as long as a layer of sentences.
fn side_by_side<A: Send, B: Send>(videos: impl FnOnce() -> A + Send, sentences: impl FnOnce() -> B + Send) -> (A, B) {
    match rayon::current_num_threads() / THREADS_OF_SENTENCES {
        0 => rayon::join(videos, sentences),
        few => rayon::join(videos, || step_on_threads(&Device::Cpu, few, sentences)),
    }
}

#[cfg(test)]
mod tests {
    use cuemark_core::Rng;
    use cuemark_tensor::Params;

    use super::*;
    use crate::testing::TOY;
    use crate::{Model, ModelError, Sharing, registry};

    const SETTINGS: &str = "network = { map = { pre_clips = 8, clips = 8, counts = [7] }, hidden = 16, joint = 12, kernel = 3,\n\
                            layers = 2, text = { dim = 8, layers = 1, heads = 2, ffn = 16, positions = 8, dropout = DROPOUT } }\n\
                            matching = { margin = 0.1 }";

    /// The network, its parameters, and four queries asked of two videos, not in the order of the videos.
    fn example(dropout: &str) -> (Box<dyn Model>, Vec<Var>, Batch) {
        let params = Params::seeded(1, &Device::Cpu);
        let settings = SETTINGS.replace("DROPOUT", dropout).parse().unwrap();
        let model = registry::find("mmn").unwrap().build(&settings, &TOY.given(), params.builder()).unwrap();
        let mut batch = TOY.batch(1);
        batch.queries.video = vec![1, 0, 1, 0];
        batch.videos.visual = batch.videos.visual.narrow(0, 0, 2).unwrap();
        (model, params.trainable().into_iter().map(|(_, var)| var).collect(), batch)
    }

    fn numbers(gradients: &GradStore, parameters: &[Var]) -> Vec<Option<Vec<f32>>> {
        let flat = |gradient: &Tensor| gradient.flatten_all().unwrap().to_vec1().unwrap();
        parameters.iter().map(|var| gradients.get(var).map(flat)).collect()
    }

    /// Loss and gradients of one step on so many threads.
    fn step(dropout: &str, threads: usize) -> (f32, Vec<Option<Vec<f32>>>) {
        let (model, parameters, batch) = example(dropout);
        assert!(model.towers().is_some());
        let pool = rayon::ThreadPoolBuilder::new().num_threads(threads).build().unwrap();
        let learn = || {
            let ready = |batch: &Batch, _: &Pass| Ok::<_, ModelError>(batch.clone());
            let pass = Pass::training(0, 1, Rng::new(7));
            crate::differentiate(model.as_ref(), &batch, &pass, &parameters, 1, ready).unwrap()
        };
        let (loss, gradients) = pool.install(learn);
        (loss.to_scalar().unwrap(), numbers(&gradients, &parameters))
    }

    #[test]
    fn side_by_side_they_give_the_loss_and_the_gradients_of_the_whole() {
        let (model, parameters, batch) = example("0.0");
        let loss = model.loss(&batch, &Pass::training(0, 1, Rng::new(7))).unwrap().total;
        let wanted = numbers(&loss.backward().unwrap(), &parameters);
        let loss: f32 = loss.to_scalar().unwrap();
        let (found, ours) = step("0.0", 2);
        assert!((found - loss).abs() < 1e-5 * loss.abs(), "{found} and {loss}");
        assert!(wanted.iter().flatten().flatten().any(|x| x.abs() > 1e-3));
        for (ours, wanted) in ours.iter().zip(&wanted) {
            assert_eq!(ours.is_some(), wanted.is_some());
            let most = wanted.iter().flatten().fold(1e-3f32, |most, x| most.max(x.abs()));
            assert!(ours.iter().flatten().zip(wanted.iter().flatten()).all(|(a, b)| (a - b).abs() < 1e-4 * most));
        }
    }

    #[test]
    fn a_step_of_both_has_work_for_more_threads_than_one_that_is_read_whole() {
        let (model, parameters, batch) = example("0.0");
        assert_eq!(Sharing::of(model.as_ref(), batch.len(), &parameters), Sharing { parts: 1, threads: 12 });
    }

    #[test]
    fn no_bit_of_a_step_depends_on_the_number_of_threads() {
        let bits = |threads: usize| {
            let (loss, gradients) = step("0.3", threads);
            let bits = |x: Vec<f32>| x.into_iter().map(f32::to_bits).collect::<Vec<_>>();
            (loss.to_bits(), gradients.into_iter().map(|gradient| gradient.map(bits)).collect::<Vec<_>>())
        };
        let one = bits(1);
        assert!(one == bits(2) && one == bits(3) && one == bits(THREADS_OF_SENTENCES));
    }
}

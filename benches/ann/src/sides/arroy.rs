//! `arroy`: trees of random planes over LMDB, which maps its file.

use std::num::NonZeroUsize;

use anyhow::Context as _;
use arroy::distances::DotProduct;
use camino::Utf8Path;
use heed::CommitOrAbort;
use rand::SeedableRng as _;

use super::{Built, Side};
use crate::COUNT;
use crate::vectors::Vectors;

const TREES: usize = 64;
/// The most that its file may grow to.
const MOST_BYTES: usize = 64 << 30;

pub struct Arroy {
    env: heed::Env,
    database: arroy::Database<'static, DotProduct>,
    width: usize,
    items: Vec<(u32, Vec<f32>)>,
}

fn env(folder: &Utf8Path) -> anyhow::Result<heed::Env> {
    // SAFETY: the folder is this comparison's alone, as LMDB wants it.
    Ok(unsafe { heed::EnvOpenOptions::new().map_size(MOST_BYTES).open(folder)? })
}

pub fn build(moments: &Vectors, folder: &Utf8Path) -> anyhow::Result<Arroy> {
    std::fs::create_dir_all(folder)?;
    let env = env(folder)?;
    let wtxn = env.write_txn()?;
    let created = env.create_databases_and_commit(wtxn, |opener, wtxn| -> heed::Result<_> {
        opener.create_database(wtxn, None).map(CommitOrAbort::<_, ()>::Commit)
    });
    let database = created?.commit().context("no database")?;
    let items = (0u32..).zip(moments.rows().map(<[f32]>::to_vec)).collect();
    let mut built = Arroy { env, database, width: moments.width, items };
    built.rewrite()?;
    Ok(built)
}

pub fn open(folder: &Utf8Path) -> anyhow::Result<Arroy> {
    let env = env(folder)?;
    let rtxn = env.read_txn()?;
    let opened = env.open_databases_and_commit(rtxn, |opener, rtxn| -> heed::Result<_> {
        opener.open_database(rtxn, None).map(CommitOrAbort::<_, ()>::Commit)
    });
    let database = opened?.commit().flatten().context("no database")?;
    Ok(Arroy { env, database, width: 0, items: Vec::new() })
}

impl Built for Arroy {
    fn rewrite(&mut self) -> anyhow::Result<()> {
        let mut wtxn = self.env.write_txn()?;
        let writer = arroy::Writer::<DotProduct>::new(self.database, 0, self.width);
        for (row, numbers) in &self.items {
            writer.add_item(&mut wtxn, *row, numbers)?;
        }
        let mut rng = rand::rngs::StdRng::seed_from_u64(1);
        writer.builder(&mut rng).n_trees(TREES).build(&mut wtxn)?;
        Ok(wtxn.commit()?)
    }
}

impl Side for Arroy {
    fn nearest(&self, query: &[f32], effort: usize) -> anyhow::Result<Vec<usize>> {
        let rtxn = self.env.read_txn()?;
        let reader = arroy::Reader::<DotProduct>::open(&rtxn, 0, self.database)?;
        let mut ask = reader.nns(COUNT);
        ask.search_k(NonZeroUsize::new(effort).context("no effort")?);
        Ok(ask.by_vector(&rtxn, query)?.into_iter().map(|(row, _)| row as usize).collect())
    }
}

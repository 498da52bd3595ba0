//! `cut`: the first rows.

use crate::Features;

pub(super) fn cut(features: &Features, rows: usize) -> Features {
    let rows = rows.min(features.rows());
    let data = features.data().iter().take(rows * features.width()).copied().collect();
    Features::from_parts(rows, features.width(), data)
}

//! A share of a matrix's cells, for one of several machines.

use super::expand::Expanded;

impl Expanded {
    /// The cells that `takes` says, by their place; a cell goes where the cells go that it stands on.
    #[must_use]
    pub fn share(mut self, takes: impl Fn(usize) -> bool) -> Self {
        let names: Vec<String> = self.cells.iter().map(|cell| cell.name.clone()).collect();
        let mut group: Vec<usize> = (0..names.len()).collect();
        for (place, cell) in self.cells.iter().enumerate() {
            for need in cell.needs.iter().filter_map(|need| names.iter().position(|name| name == need)) {
                let (from, to) = (group[place].max(group[need]), group[place].min(group[need]));
                group.iter_mut().filter(|one| **one == from).for_each(|one| *one = to);
            }
        }
        // Groups are counted, not cells, so that shares are of one size where nothing stands on anything.
        let mut order: Vec<usize> = group.clone();
        order.sort_unstable();
        order.dedup();
        let mut place = 0;
        self.cells.retain(|_| {
            let number = order.binary_search(&group[place]).unwrap_or(0);
            place += 1;
            takes(number)
        });
        self
    }
}

#[cfg(test)]
mod tests {
    use camino::Utf8Path;

    use super::*;
    use crate::matrix::{MatrixFile, expand};

    #[test]
    fn every_cell_is_in_one_share_and_with_those_it_stands_on() {
        let whole = expand(&MatrixFile::parse("m.toml", ELEVEN).unwrap(), Utf8Path::new("out")).unwrap();
        let shares: Vec<Expanded> = (0..3).map(|share| whole.clone().share(|place| place % 3 == share)).collect();
        let mut names: Vec<String> = shares.iter().flat_map(|one| &one.cells).map(|cell| cell.name.clone()).collect();
        assert_eq!(shares.iter().map(|one| one.cells.len()).collect::<Vec<_>>(), [4, 4, 3]);
        names.sort();
        let mut all: Vec<String> = whole.cells.iter().map(|cell| cell.name.clone()).collect();
        all.sort();
        assert_eq!(names, all);
        let mut tied = whole.clone();
        tied.cells[9].needs = vec![tied.cells[0].name.clone(), tied.cells[4].name.clone()];
        let first = tied.share(|place| place % 3 == 0);
        let has = |place: usize| first.cells.iter().any(|cell| cell.name == whole.cells[place].name);
        assert!(has(0) && has(4) && has(9));
    }

    const ELEVEN: &str = "
name = 'eleven'
about = 'a test'
seeds = [0, 1, 2, 3, 4]
baselines = ['bias-mode']
[[dataset]]
name = 'world'
[[model]]
name = '2d-tan'
[[model]]
name = 'mmn'
[[test]]
split = 'test-iid'
";
}

//! Which of the ways that a reader has an input goes.

/// Which of the ways that a reader has (layouts, policies, requests) an input goes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Turn {
    /// All of them, one after the other.
    Every,
    /// One of them, by any number: ways are counted round and round. What runs millions of times takes this, so that an
    /// execution is one input that one reader reads once.
    One(usize),
}

impl Turn {
    /// Those of `ways` whose turn it is.
    pub(crate) fn of<T>(self, ways: impl IntoIterator<Item = T>) -> Vec<T> {
        let mut ways: Vec<T> = ways.into_iter().collect();
        match self {
            Self::One(number) if !ways.is_empty() => {
                let way = ways.swap_remove(number % ways.len());
                vec![way]
            }
            _ => ways,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn turns_go_round_and_every_way_has_one() {
        assert_eq!(Turn::Every.of([1, 2, 3]), [1, 2, 3]);
        let taken: Vec<i32> = (0..6).flat_map(|number| Turn::One(number).of([1, 2, 3])).collect();
        assert_eq!(taken, [1, 2, 3, 1, 2, 3]);
        assert!(Turn::One(5).of([0; 0]).is_empty());
    }
}

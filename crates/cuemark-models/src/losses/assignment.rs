//! Who goes with whom at the least cost.

/// Pairs of a row and a column, none twice, as many as the shorter side allows, at the least sum of costs (the Hungarian
/// algorithm by shortest augmenting paths); ordered by row.
///
/// Costs that are no numbers are never preferred; with nothing but them, any pairs come back.
pub fn assign(costs: &[Vec<f64>]) -> Vec<(usize, usize)> {
    let columns = costs.first().map_or(0, Vec::len);
    if costs.len() > columns {
        let turned: Vec<Vec<f64>> = (0..columns).map(|column| costs.iter().map(|row| row[column]).collect()).collect();
        let mut pairs: Vec<(usize, usize)> = place(&turned).into_iter().enumerate().map(|(c, r)| (r, c)).collect();
        pairs.sort_unstable();
        return pairs;
    }
    place(costs).into_iter().enumerate().collect()
}

/// The column of every row; there are at least as many columns as rows.
fn place(costs: &[Vec<f64>]) -> Vec<usize> {
    let (rows, columns) = (costs.len(), costs.first().map_or(0, Vec::len));
    // Columns are counted from 1; column 0 holds the row that is being placed.
    let (mut row_price, mut column_price) = (vec![0.0; rows + 1], vec![0.0; columns + 1]);
    let mut row_of = vec![0; columns + 1];
    for row in 1..=rows {
        row_of[0] = row;
        let mut least = vec![f64::INFINITY; columns + 1];
        let mut from = vec![0; columns + 1];
        let mut used = vec![false; columns + 1];
        let mut column = 0;
        while row_of[column] != 0 {
            used[column] = true;
            let current = row_of[column];
            let (mut step, mut next) = (f64::INFINITY, 0);
            for other in (1..=columns).filter(|other| !used[*other]) {
                let cost = costs[current - 1][other - 1];
                // Far beyond any real cost, and still a number that prices can be subtracted from.
                let cost = if cost.is_finite() { cost } else { 1e12 };
                let reduced = cost - row_price[current] - column_price[other];
                if reduced < least[other] {
                    (least[other], from[other]) = (reduced, column);
                }
                if least[other] < step {
                    (step, next) = (least[other], other);
                }
            }
            for other in 0..=columns {
                if used[other] {
                    row_price[row_of[other]] += step;
                    column_price[other] -= step;
                } else {
                    least[other] -= step;
                }
            }
            column = next;
        }
        while column != 0 {
            row_of[column] = row_of[from[column]];
            column = from[column];
        }
    }
    let mut placed = vec![0; rows];
    (1..=columns).filter(|column| row_of[*column] != 0).for_each(|column| placed[row_of[column] - 1] = column - 1);
    placed
}

#[cfg(test)]
mod tests {
    use cuemark_core::Rng;

    use super::*;

    fn cost_of(costs: &[Vec<f64>], pairs: &[(usize, usize)]) -> f64 {
        pairs.iter().map(|(row, column)| costs[*row][*column]).sum()
    }

    /// The least sum over every choice of distinct columns for the rows, by trying them all.
    fn least(costs: &[Vec<f64>], rows: &[usize], used: &mut Vec<usize>) -> f64 {
        let Some((row, rest)) = rows.split_first() else { return 0.0 };
        let mut best = f64::INFINITY;
        for column in 0..costs[0].len() {
            if !used.contains(&column) {
                used.push(column);
                best = best.min(costs[*row][column] + least(costs, rest, used));
                used.pop();
            }
        }
        best
    }

    #[test]
    fn the_matching_is_the_cheapest_of_all_whichever_side_is_longer() {
        let mut rng = Rng::new(5);
        for _ in 0..200 {
            let (rows, columns) = (1 + rng.below(5), 1 + rng.below(6));
            let costs: Vec<Vec<f64>> = (0..rows).map(|_| (0..columns).map(|_| rng.normal()).collect()).collect();
            let turned: Vec<Vec<f64>> = (0..columns).map(|c| costs.iter().map(|row| row[c]).collect()).collect();
            let (short, all): (_, Vec<usize>) =
                if rows <= columns { (&costs, (0..rows).collect()) } else { (&turned, (0..columns).collect()) };
            let best = least(short, &all, &mut Vec::new());
            for costs in [&costs, &turned] {
                let pairs = assign(costs);
                assert_eq!(pairs.len(), rows.min(columns));
                assert!(pairs.is_sorted());
                assert!((cost_of(costs, &pairs) - best).abs() < 1e-9, "{costs:?}: {pairs:?}");
            }
        }
    }

    #[test]
    fn nothing_to_match_and_costs_that_are_none_are_survived() {
        assert_eq!(assign(&[vec![3.0], vec![1.0]]), [(1, 0)]); // one column: the cheaper row gets it
        assert!(assign(&[]).is_empty());
        assert!(assign(&[vec![], vec![]]).is_empty());
        assert_eq!(assign(&[vec![f64::NAN, 1.0], vec![1.0, f64::NAN]]), [(0, 1), (1, 0)]);
        assert_eq!(assign(&[vec![f64::NAN; 3], vec![f64::NAN; 3]]).len(), 2);
    }
}

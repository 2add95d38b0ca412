//! Ranks in place of values: however far out a value lies, it is only the first or the last.

/// The rank of each value, from 1; equal values share the mean of their ranks.
pub(super) fn ranks(values: &[f64]) -> Vec<f64> {
    let mut order: Vec<usize> = (0..values.len()).collect();
    order.sort_by(|a, b| values[*a].total_cmp(&values[*b]));
    let mut ranks = vec![0.0; values.len()];
    let mut first = 0;
    while first < order.len() {
        let value = values[order[first]];
        let equal = order[first..]
            .iter()
            .take_while(|index| values[**index] == value)
            .count();
        // Ranks first + 1 ..= first + equal.
        let rank = first as f64 + (equal as f64 + 1.0) / 2.0;
        for index in &order[first..first + equal] {
            ranks[*index] = rank;
        }
        first += equal;
    }
    ranks
}

#[cfg(test)]
mod tests {
    use super::ranks;

    #[test]
    fn equal_values_share_the_middle_of_their_ranks() {
        assert_eq!(
            ranks(&[30.0, 10.0, 30.0, 20.0, 30.0]),
            [4.0, 1.0, 4.0, 2.0, 4.0]
        );
        assert_eq!(ranks(&[-0.0, 0.0]), [1.5, 1.5]);
        assert!(ranks(&[]).is_empty());
    }

    #[test]
    fn ranks_add_up_whatever_the_ties() {
        let values: Vec<f64> = (0..100).map(|n| f64::from(n * 7 % 13)).collect();
        assert_eq!(ranks(&values).iter().sum::<f64>(), 5050.0);
    }
}

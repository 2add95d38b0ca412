//! Medians over rounds, and their ratios to those of the first column.

use super::columns::{Column, Columns};
use super::figure::Figure;

/// A figure over the rounds of one column.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Median {
    /// The median itself.
    pub value: f64,
    /// The lowest round.
    pub low: f64,
    /// The highest round.
    pub high: f64,
    /// How many rounds had the figure and no error.
    pub rounds: usize,
}

/// A figure of one run name in all columns.
#[derive(Debug, Clone)]
pub struct Row {
    /// Which.
    pub figure: Figure,
    /// One for each column; none where no round has it.
    pub medians: Vec<Option<Median>>,
}

/// The median of values; none of no values.
pub fn median(mut values: Vec<f64>) -> Option<Median> {
    values.retain(|value| value.is_finite());
    values.sort_by(f64::total_cmp);
    let (low, high) = (*values.first()?, *values.last()?);
    let middle = values.len() / 2;
    let value = match values.len() % 2 {
        0 => values[middle - 1].midpoint(values[middle]),
        _ => values[middle],
    };
    Some(Median {
        value,
        low,
        high,
        rounds: values.len(),
    })
}

/// Of a column's rounds of that name. Those that failed do not count, unless all did.
pub fn of_column(column: &Column, name: &str, figure: &Figure) -> Option<Median> {
    let values = |failed: bool| {
        let rounds = column.rounds(name);
        let rounds = rounds.filter(|run| failed || run.error.is_none());
        rounds.filter_map(|run| figure.value(run)).collect()
    };
    median(values(false)).or_else(|| median(values(true)))
}

/// The rows of one run name for those figures that any column has. One that is 0 everywhere says
/// nothing: the rate of consumers where there are none.
pub fn rows(columns: &Columns, name: &str, figures: &[Figure]) -> Vec<Row> {
    let rows = figures.iter().map(|figure| Row {
        figure: figure.clone(),
        medians: columns
            .columns
            .iter()
            .map(|column| of_column(column, name, figure))
            .collect(),
    });
    let says_something = |row: &Row| row.medians.iter().flatten().any(|m| m.high != 0.0);
    rows.filter(says_something).collect()
}

/// The names of figures that scenarios added to runs of that name.
pub fn own_figures(columns: &Columns, name: &str) -> Vec<Figure> {
    let mut names: Vec<&String> = Vec::new();
    for column in &columns.columns {
        for run in column.rounds(name) {
            names.extend(run.figures.keys());
        }
    }
    names.sort();
    names.dedup();
    names.iter().map(|name| Figure::named(name)).collect()
}

impl Row {
    /// Of a column's median to that of the first; none if either is missing or the first is 0.
    pub fn ratio(&self, column: usize) -> Option<f64> {
        let first = (*self.medians.first()?)?.value;
        let this = (*self.medians.get(column)?)?.value;
        Some(this / first).filter(|ratio| ratio.is_finite())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::report::sample;

    #[test]
    fn medians_are_of_the_middle() {
        assert_eq!(median(Vec::new()), None);
        assert_eq!(median(vec![f64::NAN]), None);
        assert_eq!(median(vec![3.0]).map(|m| m.value), Some(3.0));
        assert_eq!(median(vec![9.0, 1.0, 4.0]).map(|m| m.value), Some(4.0));
        let even = median(vec![4.0, 1.0, 2.0, 8.0]).expect("values");
        assert_eq!((even.value, even.low, even.high), (3.0, 1.0, 8.0));
        assert_eq!(even.rounds, 4);
    }

    fn row(key: &str, values: &[Option<f64>]) -> Row {
        let medians = values.iter().map(|value| median(vec![(*value)?]));
        Row {
            figure: Figure::choose(&[key]).remove(0),
            medians: medians.collect(),
        }
    }

    #[test]
    fn ratios_are_to_the_first_column() {
        let rates = row("sent", &[Some(200.0), Some(300.0), None]);
        assert_eq!(rates.ratio(0), Some(1.0));
        assert_eq!(rates.ratio(1), Some(1.5));
        assert_eq!(rates.ratio(2), None);
        assert_eq!(rates.ratio(3), None);
        assert_eq!(row("sent", &[Some(0.0), Some(0.0)]).ratio(1), None);
        assert_eq!(row("sent", &[None, Some(1.0)]).ratio(1), None);
    }

    #[test]
    fn failed_rounds_do_not_count_unless_all_failed() {
        let mut documents = sample::two_brokers();
        let sent = &Figure::choose(&["sent"])[0];
        let name = documents[0].1.runs[0].name.clone();
        let all = of_column(&Columns::of(&documents).columns[0], &name, sent).expect("rounds");
        documents[0].1.runs[0].error = Some("lost".into());
        let some = of_column(&Columns::of(&documents).columns[0], &name, sent).expect("rounds");
        assert_eq!(some.rounds, all.rounds - 1);
        for run in &mut documents[0].1.runs {
            run.error = Some("lost".into());
        }
        let none = of_column(&Columns::of(&documents).columns[0], &name, sent).expect("rounds");
        assert_eq!(none.rounds, all.rounds);
    }
}

//! A named figure and the bar that it has to clear.

/// One figure of a case.
#[derive(Debug, Clone, PartialEq)]
pub struct Reading {
    pub name: String,
    pub value: f64,
    pub unit: &'static str,
    pub bar: Option<Bar>,
    /// The value of each round, where there were several.
    pub rounds: Vec<f64>,
    /// Of several rounds the largest value counts, not the median.
    largest: bool,
}

/// What is asked of a figure.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Bar {
    pub sense: Sense,
    /// What it must be; `None` where nothing is asked but something aimed at.
    pub limit: Option<f64>,
    /// What it should be.
    pub aim: Option<f64>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Sense {
    AtLeast,
    AtMost,
}

impl Sense {
    fn clears(self, value: f64, limit: f64) -> bool {
        match self {
            Sense::AtLeast => value >= limit,
            Sense::AtMost => value <= limit,
        }
    }

    pub fn sign(self) -> char {
        match self {
            Sense::AtLeast => '≥',
            Sense::AtMost => '≤',
        }
    }
}

impl Reading {
    pub fn new(name: impl Into<String>, value: f64, unit: &'static str) -> Reading {
        Reading {
            name: name.into(),
            value,
            unit,
            bar: None,
            rounds: Vec::new(),
            largest: false,
        }
    }

    pub fn at_least(self, limit: f64) -> Reading {
        self.with_bar(Sense::AtLeast, Some(limit), None)
    }

    pub fn at_most(self, limit: f64) -> Reading {
        self.with_bar(Sense::AtMost, Some(limit), None)
    }

    /// Nothing is asked, but this is aimed at.
    pub fn aiming_at_most(self, aim: f64) -> Reading {
        self.with_bar(Sense::AtMost, None, Some(aim))
    }

    /// What is aimed at beyond the bar, in the bar's sense.
    pub fn aim(mut self, aim: f64) -> Reading {
        if let Some(bar) = &mut self.bar {
            bar.aim = Some(aim);
        }
        self
    }

    /// For what must not happen even once.
    pub fn largest_counts(mut self) -> Reading {
        self.largest = true;
        self
    }

    fn with_bar(mut self, sense: Sense, limit: Option<f64>, aim: Option<f64>) -> Reading {
        self.bar = Some(Bar { sense, limit, aim });
        self
    }

    /// Whether it clears its bar; `None` without one.
    pub fn met(&self) -> Option<bool> {
        let bar = self.bar?;
        bar.limit.map(|limit| bar.sense.clears(self.value, limit))
    }

    /// Whether it is as good as is aimed at.
    pub fn aim_reached(&self) -> Option<bool> {
        let bar = self.bar?;
        bar.aim.map(|aim| bar.sense.clears(self.value, aim))
    }
}

/// Makes one list out of the lists of several rounds: each figure's median, or largest value.
pub fn merge(rounds: Vec<Vec<Reading>>) -> Vec<Reading> {
    let first = rounds.first().cloned().unwrap_or_default();
    let merged = first.into_iter().map(|reading| {
        let values: Vec<f64> = rounds
            .iter()
            .flatten()
            .filter(|other| other.name == reading.name)
            .map(|other| other.value)
            .collect();
        let mut sorted = values.clone();
        sorted.sort_by(f64::total_cmp);
        let index = match reading.largest {
            true => sorted.len() - 1,
            false => sorted.len() / 2,
        };
        Reading {
            value: sorted[index],
            rounds: values,
            ..reading
        }
    });
    merged.collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bars_have_a_sense() {
        let rate = Reading::new("rate", 250.0, "msg/s").at_least(250.0);
        assert_eq!((rate.met(), rate.aim_reached()), (Some(true), None));
        assert_eq!(rate.aim(300.0).aim_reached(), Some(false));
        let time = Reading::new("time", 3.0, "ms").at_most(2.5);
        assert_eq!(time.met(), Some(false));
        let aim = Reading::new("time", 2.0, "ms").aiming_at_most(2.5);
        assert_eq!((aim.met(), aim.aim_reached()), (None, Some(true)));
        assert_eq!(Reading::new("size", 1.0, "MiB").met(), None);
    }

    #[test]
    fn rounds_are_merged_by_name() {
        let round = |rate, longest| {
            vec![
                Reading::new("rate", rate, "msg/s").at_least(2.5),
                Reading::new("longest", longest, "ms").largest_counts(),
            ]
        };
        let merged = merge(vec![round(3.0, 7.0), round(1.0, 9.0), round(2.0, 8.0)]);
        assert_eq!((merged[0].value, merged[0].met()), (2.0, Some(false)));
        assert_eq!(merged[0].rounds, [3.0, 1.0, 2.0]);
        assert_eq!(merged[1].value, 9.0);
    }
}

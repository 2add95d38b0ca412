//! What was published in 2010.

use std::collections::BTreeMap;

/// Messages per second that jclouds' asynchronous client reached with SQS, on machines of EC2: the
/// lowest and the highest figure of each kind.
const PUBLISHED: [(&str, f64, f64); 3] = [
    ("m1.small", 71.0, 105.0),
    ("c1.medium", 487.0, 720.0),
    ("c1.xlarge", 663.0, 1594.0),
];

/// By the names that a run has them under.
pub fn published() -> BTreeMap<String, f64> {
    let entries = PUBLISHED.iter().flat_map(|(machine, low, high)| {
        [
            (format!("{machine} from, sent rate"), *low),
            (format!("{machine} to, sent rate"), *high),
        ]
    });
    entries.collect()
}

//! Line charts, drawn here so that a page needs nothing from elsewhere.
//!
//! A chart stretches to the width that there is while its text keeps its size: lines are a drawing
//! without a fixed aspect ratio, text is placed beside and over it in per cent. Lines differ in
//! colour and in dashes, and have a letter at their end; what a pointer rests on is told in a title.

mod axis;
mod draw;
mod panels;

pub use axis::Axis;
pub use panels::{latency, latency_over_time, overview, throughput};

use super::columns::Columns;
use super::html::{Markup, element, void};
use super::table::key;

/// How many lines look different from each other.
pub const STYLES: usize = 6;

/// A chart.
pub struct Chart {
    /// What it shows.
    pub title: String,
    /// What it is counted in, if its labels do not say so.
    pub unit: String,
    /// Horizontal.
    pub x: Axis,
    /// Vertical.
    pub y: Axis,
    /// Later ones are over earlier ones.
    pub lines: Vec<Line>,
    /// From where to where on the horizontal axis something else happens, and what.
    pub shade: Option<(f64, f64, &'static str)>,
    /// Where on the horizontal axis something happened, and what it is called.
    pub marks: Vec<(f64, String)>,
    /// Pixels.
    pub height: u32,
    /// What a place on the horizontal axis is called; none: nothing is told of places.
    pub describe: Option<Box<dyn Fn(f64) -> String>>,
    /// A value as it is told.
    pub format: Box<dyn Fn(f64) -> String>,
}

/// A line of a chart.
#[derive(Debug, Clone)]
pub struct Line {
    /// Index of its colour and dashes.
    pub style: usize,
    /// At its end; empty for none.
    pub letter: String,
    /// What it is.
    pub name: String,
    /// How it is drawn.
    pub weight: Weight,
    /// By their place on the horizontal axis. One without a place interrupts the line.
    pub points: Vec<(f64, f64)>,
}

/// How a line is drawn.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Weight {
    /// As what the chart is about.
    Normal,
    /// As one of several of a kind.
    Thin,
    /// A dot for each value.
    Dots,
    /// As what was made of the others: nothing is told of its places.
    Level,
}

/// The lowest and the highest of values; infinite the wrong way round for none.
pub fn range(lines: &[Line]) -> (f64, f64) {
    range_of(lines, f64::is_finite)
}

/// The same of those that have a place on a logarithmic axis.
pub fn positive_range(lines: &[Line]) -> (f64, f64) {
    range_of(lines, |value| value.is_finite() && value > 0.0)
}

fn range_of(lines: &[Line], counts: fn(f64) -> bool) -> (f64, f64) {
    let values = lines.iter().flat_map(|line| &line.points);
    let values = values
        .map(|(_, value)| *value)
        .filter(|value| counts(*value));
    values.fold((f64::INFINITY, f64::NEG_INFINITY), |(low, high), value| {
        (low.min(value), high.max(value))
    })
}

/// What the lines of the columns look like; nothing if there is only one.
pub fn legend(columns: &Columns) -> Markup {
    if columns.is_single() {
        return Markup::new();
    }
    let entries = columns.columns.iter().enumerate().map(|(index, column)| {
        let entry = swatch(index)
            .with(key(index, &column.letter))
            .with(" ")
            .with(&column.name);
        element("li", &[], entry)
    });
    element("ul", &[("class", "legend")], Markup::from_iter(entries))
}

/// A piece of a line.
pub fn swatch(style: usize) -> Markup {
    let class = format!("line s{}", style % STYLES);
    let line = void("path", &[("class", &class), ("d", "M0 4H30")]);
    let attributes: &[_] = &[
        ("class", "swatch"),
        ("viewBox", "0 0 30 8"),
        ("aria-hidden", "true"),
    ];
    element("svg", attributes, line)
}

//! A page of changes: for each series its values with their levels, under them the cumulative sums
//! whose turns are the changes, and the changes as a table.

use super::chart::{Axis, Chart, Line, Weight, range};
use super::html::{Markup, element, page};
use super::table::{Cell, Table};
use crate::changepoint::Analysis;
use crate::number;

/// Pixels of the chart of values.
const HEIGHT: u32 = 220;
/// Pixels of the chart of sums.
const SUMS: u32 = 130;
/// With more values than this, dots would cover each other.
const DOTS: usize = 200;

/// A page of all series, in their order.
pub fn changes_page(analyses: &[Analysis]) -> String {
    let changes: usize = analyses.iter().map(|analysis| analysis.changes.len()).sum();
    let title = match (analyses, changes) {
        ([one], _) => one.title.clone(),
        (_, 1) => "1 change".into(),
        (_, changes) => format!("{changes} changes"),
    };
    let note = "Where the level of a series changed, after Wayne A. Taylor: cumulative sums of the \
                deviations from the mean turn where the mean shifts; a bootstrap says how surely.";
    let head = element("p", &[("class", "kicker")], "leveret perf changes")
        .with(element("h1", &[], &title))
        .with(element("p", &[("class", "lede")], note));
    let mut body = element("header", &[], head);
    if analyses.len() > 1 {
        body.push(element(
            "section",
            &[],
            contents(analyses).html("All series"),
        ));
    }
    for (index, analysis) in analyses.iter().enumerate() {
        body.push(section(index, analysis, analyses.len() > 1));
    }
    page(&title, body)
}

fn id(index: usize) -> String {
    format!("series-{}", index + 1)
}

/// Which series has which changes.
fn contents(analyses: &[Analysis]) -> Table {
    let mut table = Table::new();
    table.text_column("series");
    table.number_column("values", "");
    table.number_column("changes", "");
    table.text_column("last change at");
    table.number_column("by", "");
    for (index, analysis) in analyses.iter().enumerate() {
        let last = analysis.changes.last();
        let none = || Cell::new(number::NONE).class("muted");
        table.row(
            vec![
                Cell::new(&analysis.title).target(id(index)),
                Cell::new(number::count(analysis.values.len() as u64)),
                Cell::new(number::count(analysis.changes.len() as u64)),
                last.map_or_else(none, |change| Cell::new(position(analysis, change.index))),
                last.map_or_else(none, |change| {
                    Cell::new(number::percent(change.after / change.before - 1.0))
                }),
            ],
            false,
        );
    }
    table
}

fn section(index: usize, analysis: &Analysis, titled: bool) -> Markup {
    let count = match analysis.changes.len() {
        0 => "No change".to_owned(),
        1 => "One change".to_owned(),
        more => format!("{more} changes"),
    };
    let values = number::count(analysis.values.len() as u64);
    let mut content = Markup::new();
    if titled {
        content.push(element("h2", &[], &analysis.title));
    }
    let found = format!("{count} among {values} values.");
    content.push(element("p", &[("class", "note")], found));
    if !analysis.values.is_empty() {
        let charts = values_chart(analysis)
            .html()
            .with(sums_chart(analysis).html());
        content.push(element("div", &[("class", "stacked")], charts));
    }
    if !analysis.changes.is_empty() {
        content.push(table(analysis).html(&format!("Changes of {}", analysis.title)));
    }
    element("section", &[("id", &id(index))], content)
}

fn position(analysis: &Analysis, index: usize) -> String {
    let position = analysis.positions.get(index);
    position.map_or_else(|| format!("#{}", index + 1), Clone::clone)
}

/// Changes as lines between the last value of one level and the first of the next.
fn marks(analysis: &Analysis, numbered: bool) -> Vec<(f64, String)> {
    let changes = analysis.changes.iter().enumerate();
    let marks = changes.map(|(number, change)| {
        let text = if numbered {
            (number + 1).to_string()
        } else {
            String::new()
        };
        (change.index as f64 - 0.5, text)
    });
    marks.collect()
}

fn values_chart(analysis: &Analysis) -> Chart {
    let values = analysis.values.iter().enumerate();
    let points: Vec<(f64, f64)> = values
        .map(|(index, value)| (index as f64, *value))
        .collect();
    let series = |weight| Line {
        style: 0,
        letter: String::new(),
        name: "value".into(),
        weight,
        points: points.clone(),
    };
    let mut lines = Vec::new();
    match points.len() > DOTS {
        true => lines.push(series(Weight::Thin)),
        false => lines.push(series(Weight::Dots)),
    }
    lines.extend(levels(analysis));
    let (low, high) = range(&lines);
    let positions = analysis.positions.clone();
    Chart {
        title: "Values and levels,".into(),
        unit: analysis.unit.clone(),
        x: Axis::named(&analysis.positions),
        y: Axis::linear_near(low, high, 5, number::compact),
        lines,
        shade: None,
        marks: marks(analysis, true),
        height: HEIGHT,
        describe: Some(Box::new(move |x| named(&positions, x.round()))),
        format: Box::new(number::grouped),
    }
}

/// The means from change to change.
fn levels(analysis: &Analysis) -> Vec<Line> {
    let mut bounds: Vec<usize> = analysis.changes.iter().map(|change| change.index).collect();
    bounds.insert(0, 0);
    bounds.push(analysis.values.len());
    let means = analysis.changes.iter().map(|change| change.before);
    let last = match analysis.changes.last() {
        Some(change) => change.after,
        None => mean(&analysis.values),
    };
    let means = means.chain([last]);
    let levels = means.zip(bounds.windows(2)).map(|(mean, bounds)| Line {
        style: 1,
        letter: String::new(),
        name: "level".into(),
        weight: Weight::Level,
        points: vec![
            (bounds[0] as f64 - 0.5, mean),
            (bounds[1] as f64 - 0.5, mean),
        ],
    });
    levels.collect()
}

fn mean(values: &[f64]) -> f64 {
    values.iter().sum::<f64>() / values.len().max(1) as f64
}

fn sums_chart(analysis: &Analysis) -> Chart {
    let sums = analysis.cusum.iter().enumerate();
    let lines = vec![Line {
        style: 0,
        letter: String::new(),
        name: "sum".into(),
        weight: Weight::Normal,
        points: sums
            .map(|(index, sum)| (index as f64 - 0.5, *sum))
            .collect(),
    }];
    let (low, high) = range(&lines);
    let positions = analysis.positions.clone();
    Chart {
        title: "Cumulative sum of deviations from the mean,".into(),
        unit: analysis.unit.clone(),
        x: Axis::named(&analysis.positions),
        y: Axis::linear(low, high, 4, number::compact),
        lines,
        shade: None,
        marks: marks(analysis, false),
        height: SUMS,
        describe: Some(Box::new(move |x| match x < 0.0 {
            true => "before all values".into(),
            false => format!("up to {}", named(&positions, x.floor())),
        })),
        format: Box::new(number::grouped),
    }
}

fn named(positions: &[String], place: f64) -> String {
    let index = place.max(0.0) as usize;
    positions.get(index).cloned().unwrap_or_default()
}

fn table(analysis: &Analysis) -> Table {
    let mut table = Table::new();
    table.number_column("", "");
    table.text_column("from");
    table.number_column("before", &analysis.unit);
    table.number_column("after", &analysis.unit);
    table.number_column("change", "");
    table.number_column("confidence", "");
    table.number_column("found at level", "");
    for (number, change) in analysis.changes.iter().enumerate() {
        table.row(
            vec![
                Cell::new((number + 1).to_string()),
                Cell::new(position(analysis, change.index)),
                Cell::new(number::grouped(change.before)),
                Cell::new(number::grouped(change.after)),
                Cell::new(number::percent(change.after / change.before - 1.0)),
                Cell::new(format!("{:.1} %", change.confidence * 100.0)),
                Cell::new(change.depth.to_string()),
            ],
            false,
        );
    }
    table
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::report::sample;

    #[test]
    fn levels_reach_from_change_to_change() {
        let analysis = sample::analysis();
        let levels = levels(&analysis);
        assert_eq!(levels.len(), analysis.changes.len() + 1);
        assert_eq!(levels[0].points[0].0, -0.5);
        let ends = levels
            .windows(2)
            .all(|pair| pair[0].points[1].0 == pair[1].points[0].0);
        assert!(ends);
        let last = levels.last().map(|level| level.points[1].0);
        assert_eq!(last, Some(analysis.values.len() as f64 - 0.5));
    }

    #[test]
    fn a_series_without_values_is_a_page_all_the_same() {
        let empty = Analysis {
            title: "<empty>".into(),
            unit: "ms".into(),
            positions: Vec::new(),
            values: Vec::new(),
            cusum: Vec::new(),
            changes: Vec::new(),
        };
        let page = changes_page(&[empty]);
        assert!(page.contains("No change among 0 values"));
        assert!(page.contains("<h1>&lt;empty&gt;</h1>"));
    }
}

//! A chart as markup.

use std::fmt::Write;

use super::{Axis, Chart, Line, STYLES, Weight};
use crate::report::html::{Markup, element, void};

/// Horizontal units of the drawing, which is stretched to the width that there is.
const WIDTH: f64 = 1000.0;
/// Lines of more points are thinned out: more than a screen can show.
const POINTS: usize = 1_600;
/// Places of which a pointer is told.
const PLACES: usize = 60;
/// Pixels between the letters at the ends of lines.
const LETTER: f64 = 13.0;

impl Chart {
    /// For a page.
    pub fn html(&self) -> Markup {
        let mut title = element("b", &[], &self.title);
        if !self.unit.is_empty() {
            title.push(" ");
            title.push(&self.unit);
        }
        let style = format!("height:{}px", self.height);
        let plot = self.drawing().with(self.labels()).with(self.letters());
        let plot = element("div", &[("class", "plot"), ("style", &style)], plot);
        let content = element("figcaption", &[], title).with(plot);
        element("figure", &[("class", "chart")], content)
    }

    fn drawing(&self) -> Markup {
        let view = format!("0 0 {WIDTH} {}", self.height);
        let names: Vec<&str> = self.lines.iter().map(|line| &*line.name).collect();
        let label = format!("{}: {}", self.title, names.join(", "));
        let attributes: &[_] = &[
            ("viewBox", &*view),
            ("preserveAspectRatio", "none"),
            ("role", "img"),
            ("aria-label", &label),
        ];
        let mut drawing = self.ground();
        for line in &self.lines {
            drawing.push(self.line(line));
        }
        drawing.push(self.places());
        element("svg", attributes, drawing)
    }

    /// What lines are seen against.
    fn ground(&self) -> Markup {
        let mut ground = Markup::new();
        let height = f64::from(self.height);
        if let Some((from, to, _)) = self.shade {
            let (from, to) = (self.across(from), self.across(to));
            ground.push(rect("shade", from, to, height));
        }
        for tick in &self.y.ticks {
            let class = if tick.at == 0.0 { "grid zero" } else { "grid" };
            let y = self.down(tick.at).unwrap_or(height);
            ground.push(path(class, &format!("M0 {y:.1}H{WIDTH}")));
        }
        for tick in &self.x.ticks {
            let x = self.across(tick.at);
            ground.push(path("grid x", &format!("M{x:.1} 0V{height}")));
        }
        for (mark, _) in &self.marks {
            let x = self.across(*mark);
            ground.push(path("mark", &format!("M{x:.1} 0V{height}")));
        }
        ground
    }

    fn line(&self, line: &Line) -> Markup {
        let alone = line.weight == Weight::Dots || line.points.len() == 1;
        let weight = match line.weight {
            _ if alone => " dots",
            Weight::Normal | Weight::Dots => "",
            Weight::Thin => " thin",
            Weight::Level => " level",
        };
        let class = format!("line s{}{weight}", line.style % STYLES);
        let mut way = String::new();
        let mut drawn = 0;
        for (x, y) in thinned(&line.points) {
            let Some(y) = self.down(y) else {
                drawn = 0;
                continue;
            };
            let command = if drawn == 0 || alone { 'M' } else { 'L' };
            // Its round ends make a line without length a dot.
            let dot = if alone { "h0" } else { "" };
            let _ = write!(way, "{command}{:.1} {y:.1}{dot}", self.across(x));
            drawn += 1;
        }
        match way.is_empty() {
            true => Markup::new(),
            false => path(&class, &way),
        }
    }

    /// Invisible strips, each with a title that says what is there.
    fn places(&self) -> Markup {
        let longest = self
            .lines
            .iter()
            .filter(|line| line.weight != Weight::Level);
        let Some((describe, longest)) = self
            .describe
            .as_ref()
            .zip(longest.max_by_key(|line| line.points.len()))
        else {
            return Markup::new();
        };
        let every = longest.points.len().div_ceil(PLACES).max(1);
        let places: Vec<f64> = longest
            .points
            .iter()
            .step_by(every)
            .map(|(x, _)| *x)
            .collect();
        let mut strips = Markup::new();
        for (index, place) in places.iter().enumerate() {
            let before = index.checked_sub(1).and_then(|index| places.get(index));
            let from = before.map_or(self.x.low, |before| before.midpoint(*place));
            let after = places.get(index + 1);
            let to = after.map_or(self.x.high, |after| after.midpoint(*place));
            let mut title = describe(*place);
            for line in &self.lines {
                if let Some(value) = nearest(&line.points, *place, from, to) {
                    let _ = write!(title, "\n{}: {}", line.name, (self.format)(value));
                }
            }
            let (left, right) = (self.across(from), self.across(to));
            let (x, width) = (format!("{left:.1}"), format!("{:.1}", right - left));
            let at = format!("{:.1}", self.across(*place));
            let attributes: &[_] = &[
                ("class", "place"),
                ("x", &*x),
                ("width", &width),
                ("data-at", &at),
            ];
            strips.push(element("rect", attributes, element("title", &[], title)));
        }
        strips
    }

    /// What is written along the axes.
    fn labels(&self) -> Markup {
        let mut labels = Markup::new();
        let mut label = |class: &str, side: &str, place: Option<f64>, text: &str| {
            if let Some(place) = place.filter(|_| !text.is_empty()) {
                let style = format!("{side}:{:.2}%", place * 100.0);
                labels.push(element(
                    "span",
                    &[("class", class), ("style", &style)],
                    text,
                ));
            }
        };
        for tick in &self.y.ticks {
            label("y", "bottom", self.y.place(tick.at), &tick.label);
        }
        for tick in &self.x.ticks {
            let class = if tick.minor { "x minor" } else { "x" };
            label(class, "left", self.x.place(tick.at), &tick.label);
        }
        for (mark, text) in &self.marks {
            label("marked", "left", self.x.place(*mark), text);
        }
        if let Some((from, _, text)) = self.shade {
            label("shaded", "left", self.x.place(from), text);
        }
        labels
    }

    /// The letters at the ends of lines, moved apart where they would cover each other. Lines of one
    /// letter share it.
    fn letters(&self) -> Markup {
        let mut ends: Vec<(f64, usize, &str)> = Vec::new();
        for line in self.lines.iter().filter(|line| !line.letter.is_empty()) {
            let same = self
                .lines
                .iter()
                .filter(|other| other.letter == line.letter);
            let last =
                same.filter_map(|line| line.points.iter().rev().find_map(|(_, y)| self.down(*y)));
            let last: Vec<f64> = last.collect();
            let known = ends.iter().any(|(_, _, letter)| *letter == line.letter);
            if !last.is_empty() && !known {
                let mean = last.iter().sum::<f64>() / last.len() as f64;
                ends.push((mean, line.style, &line.letter));
            }
        }
        ends.sort_by(|one, other| one.0.total_cmp(&other.0));
        let places: Vec<f64> = ends.iter().map(|end| end.0).collect();
        let places = apart(&places, LETTER, f64::from(self.height));
        let letters = ends.iter().zip(places).map(|((_, style, letter), place)| {
            let class = format!("end s{}", style % STYLES);
            let style = format!("top:{place:.1}px");
            element("span", &[("class", &class), ("style", &style)], *letter)
        });
        Markup::from_iter(letters)
    }

    fn across(&self, x: f64) -> f64 {
        place_within(&self.x, x).unwrap_or(0.0) * WIDTH
    }

    fn down(&self, y: f64) -> Option<f64> {
        Some((1.0 - place_within(&self.y, y)?) * f64::from(self.height))
    }
}

fn place_within(axis: &Axis, value: f64) -> Option<f64> {
    Some(axis.place(value)?.clamp(0.0, 1.0))
}

fn path(class: &str, way: &str) -> Markup {
    void("path", &[("class", class), ("d", way)])
}

fn rect(class: &str, from: f64, to: f64, height: f64) -> Markup {
    let (x, width) = (format!("{from:.1}"), format!("{:.1}", (to - from).max(0.0)));
    let height = height.to_string();
    let attributes: &[_] = &[
        ("class", class),
        ("x", &x),
        ("width", &width),
        ("height", &height),
    ];
    void("rect", attributes)
}

/// The value next to a place, if it is not farther off than what the place stands for.
fn nearest(points: &[(f64, f64)], place: f64, from: f64, to: f64) -> Option<f64> {
    let after = points.partition_point(|(x, _)| *x < place);
    let around = points.get(after.saturating_sub(1)..points.len().min(after + 1))?;
    let near = around
        .iter()
        .min_by(|one, other| (one.0 - place).abs().total_cmp(&(other.0 - place).abs()))?;
    let slack = (to - from) * 0.5;
    let within = near.0 >= from - slack && near.0 <= to + slack;
    within.then_some(near.1).filter(|value| value.is_finite())
}

/// At most [`POINTS`]: of each stretch the lowest and the highest, so that spikes stay.
fn thinned(points: &[(f64, f64)]) -> Vec<(f64, f64)> {
    if points.len() <= POINTS {
        return points.to_vec();
    }
    let stretch = points.len().div_ceil(POINTS / 2);
    let mut kept = Vec::with_capacity(POINTS);
    for stretch in points.chunks(stretch) {
        let by_value = |one: &&(f64, f64), other: &&(f64, f64)| one.1.total_cmp(&other.1);
        let lowest = stretch.iter().min_by(by_value);
        let highest = stretch.iter().max_by(by_value);
        let mut both: Vec<(f64, f64)> = lowest.into_iter().chain(highest).copied().collect();
        both.sort_by(|one, other| one.0.total_cmp(&other.0));
        kept.append(&mut both);
    }
    kept
}

/// Sorted places at least `gap` from each other, within 0 and `end` as long as they fit.
fn apart(places: &[f64], gap: f64, end: f64) -> Vec<f64> {
    let mut moved = places.to_vec();
    for index in 1..moved.len() {
        moved[index] = moved[index].max(moved[index - 1] + gap);
    }
    let mut limit = end;
    for place in moved.iter_mut().rev() {
        *place = place.min(limit);
        limit = *place - gap;
    }
    moved
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn letters_do_not_cover_each_other() {
        assert_eq!(
            apart(&[10.0, 12.0, 100.0], 13.0, 200.0),
            [10.0, 23.0, 100.0]
        );
        assert_eq!(apart(&[198.0, 199.0], 13.0, 200.0), [187.0, 200.0]);
        assert!(apart(&[], 13.0, 200.0).is_empty());
    }

    #[test]
    fn long_lines_keep_their_spikes() {
        let mut points: Vec<(f64, f64)> = (0..100_000).map(|n| (f64::from(n), 1.0)).collect();
        points[54_321].1 = 9.0;
        let thin = thinned(&points);
        assert!(thin.len() <= POINTS + 2);
        assert!(thin.contains(&(54_321.0, 9.0)));
        assert!(thin.is_sorted_by(|one, other| one.0 <= other.0));
    }

    #[test]
    fn the_nearest_value_is_not_one_from_far_away() {
        let points = [(1.0, 10.0), (2.0, 20.0), (3.0, f64::NAN)];
        assert_eq!(nearest(&points, 1.1, 0.5, 1.5), Some(10.0));
        assert_eq!(nearest(&points, 9.0, 8.5, 9.5), None);
        assert_eq!(nearest(&points, 3.0, 2.5, 3.5), None);
        assert_eq!(nearest(&[], 1.0, 0.0, 2.0), None);
    }
}

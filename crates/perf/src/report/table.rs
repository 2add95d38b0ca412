//! Tables, for a page and for a terminal.

use super::html::{Markup, element};

/// Rows under a head; the first cell of a row is its heading.
#[derive(Debug, Clone, Default)]
pub struct Table {
    /// Headings over several columns: text and how many. Empty for none.
    groups: Vec<(String, usize)>,
    heads: Vec<Head>,
    rows: Vec<Row>,
}

#[derive(Debug, Clone)]
struct Head {
    text: String,
    unit: String,
    number: bool,
}

#[derive(Debug, Clone)]
struct Row {
    cells: Vec<Cell>,
    /// Whether something new begins here, which a line above it shows.
    new: bool,
}

/// What is in one place of a table.
#[derive(Debug, Clone, Default)]
pub struct Cell {
    text: String,
    note: String,
    class: &'static str,
    column: Option<usize>,
    target: Option<String>,
}

impl Cell {
    /// With this text.
    pub fn new(text: impl Into<String>) -> Cell {
        Cell {
            text: text.into(),
            ..Cell::default()
        }
    }

    /// With smaller text after it, on a page only.
    pub fn note(mut self, note: impl Into<String>) -> Cell {
        self.note = note.into();
        self
    }

    /// Of that class in the page's style.
    pub fn class(mut self, class: &'static str) -> Cell {
        self.class = class;
        self
    }

    /// In the colour of that column of a comparison.
    pub fn column(mut self, index: usize) -> Cell {
        self.column = Some(index);
        self
    }

    /// On a page, a link to the element of that id.
    pub fn target(mut self, id: String) -> Cell {
        self.target = Some(id);
        self
    }

    fn html(&self, name: &'static str, number: bool) -> Markup {
        let mut content: Markup = match (self.column, &self.target) {
            (Some(column), _) => key(column, &self.text),
            (_, Some(id)) => element("a", &[("href", &format!("#{id}"))], &self.text),
            _ => Markup::from(&self.text),
        };
        if !self.note.is_empty() {
            content.push(" ");
            content.push(element("small", &[], &self.note));
        }
        let number = if number { "number" } else { "" };
        let class = format!("{number} {}", self.class);
        match (name, class.trim()) {
            ("th", class) => element(name, &[("scope", "row"), ("class", class)], content),
            (_, "") => element(name, &[], content),
            (_, class) => element(name, &[("class", class)], content),
        }
    }
}

/// The letter of a column in its colour.
pub fn key(column: usize, letter: &str) -> Markup {
    let class = format!("key s{}", column % super::chart::STYLES);
    element("b", &[("class", &class)], letter)
}

impl Table {
    /// One without rows.
    pub fn new() -> Table {
        Table::default()
    }

    /// Adds a heading over the next `columns` columns.
    pub fn group(&mut self, text: &str, columns: usize) {
        self.groups.push((text.into(), columns));
    }

    /// Adds a column of text.
    pub fn text_column(&mut self, head: &str) {
        self.heads.push(Head {
            text: head.into(),
            unit: String::new(),
            number: false,
        });
    }

    /// Adds a column of numbers.
    pub fn number_column(&mut self, head: &str, unit: &str) {
        self.heads.push(Head {
            text: head.into(),
            unit: unit.into(),
            number: true,
        });
    }

    /// Adds a row. `new` if something else than in the row before begins.
    pub fn row(&mut self, cells: Vec<Cell>, new: bool) {
        debug_assert_eq!(cells.len(), self.heads.len());
        self.rows.push(Row { cells, new });
    }

    /// Whether it has no rows.
    pub fn is_empty(&self) -> bool {
        self.rows.is_empty()
    }

    /// For a page, in a frame that scrolls when the page is too narrow.
    pub fn html(&self, label: &str) -> Markup {
        let mut head = Markup::new();
        if !self.groups.is_empty() {
            let groups = self.groups.iter().map(|(text, columns)| {
                let columns = columns.to_string();
                element("th", &[("scope", "colgroup"), ("colspan", &columns)], text)
            });
            head.push(element(
                "tr",
                &[("class", "groups")],
                Markup::from_iter(groups),
            ));
        }
        let heads = self.heads.iter().map(|head| {
            let mut content = Markup::from(&head.text);
            if !head.unit.is_empty() {
                content.push(" ");
                content.push(element("small", &[], &head.unit));
            }
            let class = if head.number { "number" } else { "" };
            element("th", &[("scope", "col"), ("class", class)], content)
        });
        head.push(element("tr", &[], Markup::from_iter(heads)));
        let rows = self.rows.iter().map(|row| {
            let cells = row.cells.iter().zip(&self.heads).enumerate();
            let cells = cells.map(|(index, (cell, head))| match index {
                0 => cell.html("th", head.number),
                _ => cell.html("td", head.number),
            });
            let class = if row.new { "new" } else { "" };
            element("tr", &[("class", class)], Markup::from_iter(cells))
        });
        let table =
            element("thead", &[], head).with(element("tbody", &[], Markup::from_iter(rows)));
        let frame: &[_] = &[
            ("class", "scroll"),
            ("role", "region"),
            ("tabindex", "0"),
            ("aria-label", label),
        ];
        element("div", frame, element("table", &[], table))
    }

    /// For a terminal.
    pub fn text(&self) -> String {
        let heads: Vec<String> = self.heads.iter().map(Head::line).collect();
        let mut widths: Vec<usize> = heads.iter().map(|head| width(head)).collect();
        for row in &self.rows {
            for (index, cell) in row.cells.iter().enumerate() {
                widths[index] = widths[index].max(width(&plain(&cell.text)));
            }
        }
        let line = |cells: &mut dyn Iterator<Item = String>| {
            let mut line = String::new();
            for ((text, width), head) in cells.zip(&widths).zip(&self.heads) {
                line.push_str(&pad(&text, *width, head.number));
                line.push_str("  ");
            }
            line.trim_end().to_owned() + "\n"
        };
        let mut text = self.groups_line(&widths);
        text.push_str(&line(&mut heads.into_iter()));
        for row in &self.rows {
            text.push_str(&line(&mut row.cells.iter().map(|cell| plain(&cell.text))));
        }
        text
    }
}

impl Table {
    /// The headings over groups of columns, each where its first column begins, or as soon as the
    /// one before leaves room.
    fn groups_line(&self, widths: &[usize]) -> String {
        if self.groups.is_empty() {
            return String::new();
        }
        let (mut line, mut column) = (String::new(), 0);
        for (text, columns) in &self.groups {
            let start: usize = widths[..column].iter().map(|width| width + 2).sum();
            let gap = start.saturating_sub(width(&line));
            if !text.is_empty() {
                line.push_str(&" ".repeat(gap));
                line.push_str(&plain(text));
                line.push_str("  ");
            }
            column += columns;
        }
        line.trim_end().to_owned() + "\n"
    }
}

impl Head {
    fn line(&self) -> String {
        match self.unit.is_empty() {
            true => plain(&self.text),
            false => format!("{} ({})", self.text, self.unit),
        }
    }
}

/// Without what would move a terminal's cursor or change its colours.
pub fn plain(text: &str) -> String {
    text.chars()
        .map(|character| match character.is_control() {
            true => '\u{fffd}',
            false => character,
        })
        .collect()
}

fn width(text: &str) -> usize {
    text.chars().count()
}

fn pad(text: &str, to: usize, right: bool) -> String {
    let space = " ".repeat(to.saturating_sub(width(text)));
    match right {
        true => space + text,
        false => text.to_owned() + &space,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn table() -> Table {
        let mut table = Table::new();
        table.text_column("run");
        table.number_column("sent", "msg/s");
        table.row(vec![Cell::new("one"), Cell::new("1,234").note("1–2")], true);
        table.row(vec![Cell::new("two\u{1b}[31m"), Cell::new("12 µs")], false);
        table
    }

    #[test]
    fn text_is_aligned_and_cannot_command_a_terminal() {
        let text = table().text();
        let lines: Vec<_> = text.lines().collect();
        assert_eq!(lines[0], "run       sent (msg/s)");
        assert_eq!(lines[1], "one              1,234");
        assert_eq!(lines[2], "two\u{fffd}[31m         12 µs");
    }

    #[test]
    fn html_marks_headings_and_numbers() {
        let html = table().html("Results").into_string();
        assert!(html.contains("<td class=\"number\">1,234 <small>1–2</small></td>"));
        assert!(html.contains("<th scope=\"row\" class=\"\">one</th>"));
    }
}

//! A table with lines around its cells.

/// Draws rows under the names of their columns.
pub(super) fn table(columns: &[&str], rows: &[Vec<String>]) -> String {
    let widths: Vec<usize> = columns
        .iter()
        .enumerate()
        .map(|(index, column)| {
            let cells = rows.iter().map(|row| row[index].chars().count());
            cells.max().unwrap_or(0).max(column.chars().count())
        })
        .collect();
    let rule = |left: &str, middle: &str, right: &str| {
        let parts: Vec<String> = widths.iter().map(|width| "─".repeat(width + 2)).collect();
        format!("{left}{}{right}\n", parts.join(middle))
    };
    let line = |cells: &mut dyn Iterator<Item = &str>| {
        let cells: Vec<String> = cells
            .zip(&widths)
            .map(|(cell, width)| format!(" {cell:<width$} "))
            .collect();
        format!("│{}│\n", cells.join("│"))
    };
    let mut text = rule("┌", "┬", "┐");
    text.push_str(&line(&mut columns.iter().copied()));
    for row in rows {
        text.push_str(&rule("├", "┼", "┤"));
        text.push_str(&line(&mut row.iter().map(String::as_str)));
    }
    text.push_str(&rule("└", "┴", "┘"));
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_cell_has_its_place() {
        let rows = [vec!["guest".to_owned(), "[x]".to_owned()]];
        let expected = "\
┌───────┬──────┐
│ user  │ tags │
├───────┼──────┤
│ guest │ [x]  │
└───────┴──────┘
";
        assert_eq!(table(&["user", "tags"], &rows), expected);
    }
}

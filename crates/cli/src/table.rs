//! Columns of text.

/// Lines in which the columns stand below each other, the first being the headings. Numbers stand to the right.
pub fn lines(rows: &[Vec<String>]) -> Vec<String> {
    let columns = rows.iter().map(Vec::len).max().unwrap_or(0);
    let width = |column: usize| {
        rows.iter().filter_map(|row| row.get(column)).map(|cell| cell.chars().count()).max().unwrap_or(0)
    };
    let is_number = |column: usize| {
        let mut cells = rows.iter().skip(1).filter_map(|row| row.get(column)).peekable();
        // Places in a log (`3/4711`) count as numbers, addresses with a port do not.
        let looks_so =
            |cell: &String| cell.chars().all(|letter| letter.is_ascii_digit() || "/-.".contains(letter));
        cells.peek().is_some() && cells.all(looks_so)
    };
    let shape: Vec<_> = (0..columns).map(|column| (width(column), is_number(column))).collect();
    let line = |row: &Vec<String>| {
        let mut line = String::new();
        for (cell, (width, is_number)) in row.iter().zip(&shape) {
            line += &match is_number {
                true => format!("{cell:>width$}  "),
                false => format!("{cell:<width$}  "),
            };
        }
        line.trim_end().to_owned()
    };
    rows.iter().map(line).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_stand_to_the_right_and_words_to_the_left() {
        let rows = [["NAME", "LAG", "AT"], ["a", "7", "1.2:3"], ["longer", "1234", "1.2:30"]];
        let rows: Vec<Vec<String>> = rows.iter().map(|row| row.map(str::to_owned).to_vec()).collect();
        assert_eq!(lines(&rows), ["NAME     LAG  AT", "a          7  1.2:3", "longer  1234  1.2:30"]);
        assert!(lines(&[]).is_empty());
    }
}

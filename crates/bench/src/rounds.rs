//! The figures of several rounds in one.

/// The median of the figures that are numbers. Not a number if there are none.
pub fn median(figures: impl IntoIterator<Item = f64>) -> f64 {
    let mut figures: Vec<f64> = figures.into_iter().filter(|figure| !figure.is_nan()).collect();
    figures.sort_by(f64::total_cmp);
    let middle = figures.len() / 2;
    match figures.len() {
        0 => f64::NAN,
        count if count % 2 == 1 => figures[middle],
        _ => (figures[middle - 1] + figures[middle]) / 2.0,
    }
}

/// Their median, unless there are none.
pub fn median_of_any(figures: impl IntoIterator<Item = f64>) -> Option<f64> {
    Some(median(figures)).filter(|median| !median.is_nan())
}

/// The least and the greatest. Infinite if there are none.
pub fn range(figures: impl IntoIterator<Item = f64>) -> [f64; 2] {
    figures.into_iter().fold([f64::INFINITY, f64::NEG_INFINITY], |[least, greatest], figure| {
        [least.min(figure), greatest.max(figure)]
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_median_of_an_even_number_lies_between_two() {
        assert_eq!(median([3.0, 1.0, 2.0]), 2.0);
        assert_eq!(median([4.0, 1.0, 2.0, 3.0]), 2.5);
        assert_eq!(median([f64::NAN, 3.0, 1.0]), 2.0);
        assert_eq!((median_of_any([]), median_of_any([f64::NAN])), (None, None));
    }

    #[test]
    fn the_range_goes_from_the_least_to_the_greatest() {
        assert_eq!(range([3.0, f64::NAN, 1.0, 2.0]), [1.0, 3.0]);
        assert_eq!(range([]), [f64::INFINITY, f64::NEG_INFINITY]);
    }
}

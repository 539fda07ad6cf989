//! Medians, percentiles, and figures with their limits.

use std::time::Duration;

pub fn median(mut values: Vec<f64>) -> f64 {
    percentile(&mut values, 50.0)
}

/// Sorts the values and takes the nearest one.
pub fn percentile(values: &mut [f64], percent: f64) -> f64 {
    assert!(!values.is_empty(), "something was measured");
    values.sort_by(f64::total_cmp);
    let place = (values.len() - 1) as f64 * percent / 100.0;
    values[place.round() as usize]
}

pub fn per_second(count: usize, took: Duration) -> f64 {
    count as f64 / took.as_secs_f64()
}

pub fn ms(duration: Duration) -> f64 {
    duration.as_secs_f64() * 1_000.0
}

/// A figure, its limit, and their ratio: each the median of its rounds.
#[derive(Clone, Copy, Debug)]
pub struct Compared {
    pub figure: f64,
    pub limit: f64,
    pub ratio: f64,
}

/// Limit, figure, limit, figure, … limit: the speed of a shared machine varies, so each figure is divided by the mean
/// of the two limits around it.
pub fn interleaved(
    rounds: usize,
    mut limit: impl FnMut() -> f64,
    mut figure: impl FnMut() -> f64,
) -> Compared {
    let (mut figures, mut limits, mut ratios) = (Vec::new(), vec![limit()], Vec::new());
    for round in 0..rounds {
        figures.push(figure());
        limits.push(limit());
        ratios.push(figures[round] / ((limits[round] + limits[round + 1]) / 2.0));
    }
    Compared { figure: median(figures), limit: median(limits), ratio: median(ratios) }
}

#[cfg(test)]
mod tests {
    use super::{interleaved, median, percentile};

    #[test]
    fn median_and_percentile() {
        assert_eq!(median(vec![3.0, 1.0, 2.0]), 2.0);
        let mut values: Vec<f64> = (1..=101).rev().map(f64::from).collect();
        assert_eq!(percentile(&mut values, 99.0), 100.0);
    }

    #[test]
    fn each_figure_is_divided_by_the_limits_around_it() {
        // The machine slows down by half; the ratio stays.
        let mut limits = [100.0, 100.0, 50.0, 50.0].into_iter();
        let mut figures = [80.0, 60.0, 40.0].into_iter();
        let compared = interleaved(3, || limits.next().unwrap_or(0.0), || figures.next().unwrap_or(0.0));
        assert_eq!((compared.figure, compared.limit, compared.ratio), (60.0, 100.0, 0.8));
    }
}

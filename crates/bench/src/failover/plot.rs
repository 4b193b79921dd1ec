//! The distribution of the gaps as a picture: for each length, the share of runs that were no longer.

use super::report::Cell;
use anyhow::Context;
use plotters::prelude::*;
use std::path::Path;

const SIZE: (u32, u32) = (800, 480);
/// The pixels that the text beside an axis takes.
const LABEL_AREA: u32 = 48;

pub fn write(file: &Path, cell: &Cell) -> anyhow::Result<()> {
    std::fs::write(file, picture(cell)?).with_context(|| format!("writing {}", file.display()))
}

fn picture(cell: &Cell) -> anyhow::Result<String> {
    let mut svg = String::new();
    {
        let area = SVGBackend::with_string(&mut svg, SIZE).into_drawing_area();
        area.fill(&WHITE)?;
        let title = format!(
            "{} of the active, {} members, {} files, {} client, {} runs",
            cell.fault.name(),
            cell.members,
            cell.files,
            cell.client.name(),
            cell.gaps_ms.len()
        );
        let longest = Cell::percentile(&cell.gaps_ms, 1.0).max(1.0);
        let mut chart = ChartBuilder::on(&area)
            .caption(title, ("sans-serif", 18))
            .margin(16)
            .x_label_area_size(LABEL_AREA)
            .y_label_area_size(LABEL_AREA)
            .build_cartesian_2d(0.0..longest * 1.05, 0.0..1.0)?;
        chart
            .configure_mesh()
            // A line a label: ten more between two of them would hide the curve.
            .max_light_lines(0)
            .x_desc("longest time without a completed operation (ms)")
            .y_desc("share of runs")
            .draw()?;
        chart.draw_series(LineSeries::new(steps(&cell.gaps_ms), &BLUE))?;
        area.present()?;
    }
    Ok(svg)
}

/// The corners of the curve.
fn steps(gaps_ms: &[f64]) -> Vec<(f64, f64)> {
    let mut sorted = gaps_ms.to_vec();
    sorted.sort_by(f64::total_cmp);
    let mut corners = vec![(0.0, 0.0)];
    for (index, gap) in sorted.iter().enumerate() {
        let below = index as f64 / sorted.len() as f64;
        corners.extend([(*gap, below), (*gap, (index + 1) as f64 / sorted.len() as f64)]);
    }
    corners
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::failover::{Fault, history::Verdict, scene::Client};

    #[test]
    fn the_curve_ends_with_all_runs() {
        assert_eq!(steps(&[30.0, 10.0]), [(0.0, 0.0), (10.0, 0.0), (10.0, 0.5), (30.0, 0.5), (30.0, 1.0)]);
    }

    #[test]
    fn a_picture_says_what_it_shows() -> anyhow::Result<()> {
        let cell = Cell {
            fault: Fault::Kill,
            client: Client::Hadoop,
            files: 7_000_000,
            members: 4,
            gaps_ms: vec![410.0, 520.0],
            takeovers: Vec::new(),
            verdict: Verdict::default(),
        };
        let svg = picture(&cell)?;
        anyhow::ensure!(
            svg.starts_with("<svg") && svg.contains("7000000 files, hadoop client, 2 runs"),
            "{svg}"
        );
        Ok(())
    }
}

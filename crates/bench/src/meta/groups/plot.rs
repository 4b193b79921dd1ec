//! The rates of all shapes as a picture: a cluster of bars for each operation.

use super::report::Cell;
use crate::meta::Op;
use anyhow::Context;
use plotters::prelude::*;
use std::path::Path;

const SIZE: (u32, u32) = (1_000, 480);
const LABEL_AREA: u32 = 56;
/// Of the room of an operation, what its bars take.
const BARS: f64 = 0.8;

pub fn write(file: &Path, ops: &[Op], cells: &[Cell]) -> anyhow::Result<()> {
    std::fs::write(file, picture(ops, cells)?).with_context(|| format!("writing {}", file.display()))
}

fn picture(ops: &[Op], cells: &[Cell]) -> anyhow::Result<String> {
    let mut kinds: Vec<_> = cells.iter().map(|cell| cell.kind).collect();
    kinds.sort_unstable();
    kinds.dedup();
    let highest = cells.iter().map(Cell::rate).fold(1.0, f64::max);
    let mut svg = String::new();
    {
        let area = SVGBackend::with_string(&mut svg, SIZE).into_drawing_area();
        area.fill(&WHITE)?;
        let mut chart = ChartBuilder::on(&area)
            .caption("operations a second, all servers on one machine", ("sans-serif", 18))
            .margin(16)
            .x_label_area_size(LABEL_AREA)
            .y_label_area_size(LABEL_AREA + 24)
            .build_cartesian_2d(0.0..ops.len() as f64, 0.0..highest * 1.05)?;
        chart
            .configure_mesh()
            .disable_x_mesh()
            .max_light_lines(0)
            .x_labels(0)
            .y_desc("operations a second")
            .draw()?;
        let width = BARS / kinds.len() as f64;
        for (number, kind) in kinds.iter().enumerate() {
            let color = Palette99::pick(number).mix(0.9);
            let bars = ops.iter().enumerate().filter_map(|(place, op)| {
                let cell = cells.iter().find(|cell| cell.op == *op && cell.kind == *kind)?;
                let left = place as f64 + (1.0 - BARS) / 2.0 + number as f64 * width;
                Some(Rectangle::new([(left, 0.0), (left + width, cell.rate())], color.filled()))
            });
            chart
                .draw_series(bars)?
                .label(kind.to_string())
                .legend(move |(x, y)| Rectangle::new([(x, y - 5), (x + 10, y + 5)], color.filled()));
        }
        chart.configure_series_labels().background_style(WHITE.mix(0.8)).border_style(BLACK).draw()?;
        for (place, op) in ops.iter().enumerate() {
            let (x, _) = chart.backend_coord(&(place as f64 + 0.5, 0.0));
            let y = SIZE.1 as i32 - LABEL_AREA as i32;
            let centred =
                TextStyle::from(("sans-serif", 15).into_font()).pos(plotters::style::text_anchor::Pos::new(
                    plotters::style::text_anchor::HPos::Center,
                    plotters::style::text_anchor::VPos::Top,
                ));
            area.draw_text(&op.name(), &centred, (x, y))?;
        }
        area.present()?;
    }
    Ok(svg)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::meta::groups::stage::Kind;

    #[test]
    fn a_picture_names_shapes_and_operations() -> anyhow::Result<()> {
        let shape = |groups, op| Cell::new(Kind::Clover { groups, members: 2 }, op);
        let svg = picture(&[Op::Create, Op::Mkdir], &[shape(3, Op::Create), shape(1, Op::Mkdir)])?;
        for word in ["3A3S", "1A1S", "create", "mkdir"] {
            anyhow::ensure!(svg.contains(word), "no {word} in {svg}");
        }
        Ok(())
    }
}

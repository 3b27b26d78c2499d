//! The report as one HTML file: no script, no font and no picture from elsewhere.

use std::fmt::Write;

use crate::bound::Ruling;
use crate::report::{Kind, Report, Row, at_least, percent};

/// Width and height of a plot, in pixels.
const SIZE: (f64, f64) = (640.0, 420.0);
/// Left, right, top and bottom of its frame.
const MARGIN: (f64, f64, f64, f64) = (56.0, 16.0, 16.0, 46.0);
/// One colour for each series, and round again.
const COLOURS: [&str; 6] = [
    "#0a4696", "#c85014", "#1e8c46", "#7a3fa0", "#8c6a00", "#3f7f8f",
];

const STYLE: &str = "body{font:16px/1.5 system-ui,sans-serif;max-width:60em;margin:2em auto;padding:0 1em;color:#222}\
h1{font-size:1.5em}table{border-collapse:collapse;width:100%;font-size:.9em}th,td{text-align:left;padding:.3em .6em;\
border-bottom:1px solid #ddd}td.n{text-align:right;font-variant-numeric:tabular-nums}.violated{color:#b00020;font-weight:600}\
.consistent{color:#1e6e3c}.inconclusive{color:#666}.lead{font-size:1.15em;border-left:4px solid #0a4696;padding-left:.8em}\
svg text{font:12px system-ui,sans-serif;fill:#333}";

impl Report {
    /// One file that needs nothing else.
    pub fn to_html(&self) -> String {
        let mut page = String::new();
        let title = escape(self.title());
        // Writing to a string does not fail.
        let _ = write!(
            page,
            "<!doctype html>\n<html lang=\"en\"><head><meta charset=\"utf-8\"><title>{title}</title><style>{STYLE}</style></head><body>\n\
             <h1>{title}</h1>\n<p class=\"lead\">{}</p>\n",
            escape(self.sentence())
        );
        page.push_str(&plot(self.rows()));
        page.push_str(
            "<table><thead><tr><th>attack</th><th>claimed &epsilon;</th><th>measured, at least</th><th>&delta;</th><th>confidence</th>\
             <th>rests on</th><th>verdict</th><th>evidence</th></tr></thead><tbody>\n",
        );
        for row in self.rows() {
            page.push_str(&table_row(row));
        }
        page.push_str(
            "</tbody></table>\n<p>A measured number is a lower bound on the true loss, but for estimates: it may refute a claim and can never prove one. Verdicts rest on \
             bounds that assume nothing about the mechanism; what rests on a model, and estimates, have none. <em>Inconclusive</em> means that nothing was refuted and nothing else can be said: \
             a mechanism with twice the claimed loss could have passed, as the trials were too few; or the outputs were such that no attack could have found anything in them; or the loss was measured at a smaller \
             &delta; than was claimed. The sentence above says which.</p>\n",
        );
        if !self.settings().is_empty() {
            page.push_str("<h2>What was run</h2>\n<table><tbody>\n");
            for (name, value) in self.settings() {
                let (name, value) = (escape(name), escape(value));
                let _ = writeln!(page, "<tr><th>{name}</th><td>{value}</td></tr>");
            }
            page.push_str("</tbody></table>\n");
        }
        page.push_str("</body></html>\n");
        page
    }
}

fn table_row(row: &Row) -> String {
    let claimed = row.claimed().map_or("none".into(), number);
    let confidence = row.confidence().map_or("none".into(), percent);
    let verdict = row.verdict().map_or(String::new(), |verdict| {
        format!("<span class=\"{verdict}\">{verdict}</span>")
    });
    let kind = match row.kind() {
        Kind::DistributionFree => "counts alone",
        Kind::ModelBased => "a model",
        Kind::Estimate => "an estimate",
    };
    let delta = row.delta();
    format!(
        "<tr><td>{}</td><td class=\"n\">{claimed}</td><td class=\"n\">{}</td><td class=\"n\">{delta}</td><td class=\"n\">{confidence}</td>\
         <td>{kind}</td><td>{verdict}</td><td>{}</td></tr>\n",
        escape(row.attack()),
        measured(row),
        escape(row.evidence()),
    )
}

/// A bound is rounded down, as a lower bound is; an estimate is none.
fn measured(row: &Row) -> String {
    match row.kind() {
        Kind::Estimate => format!("about {}", number(row.measured())),
        Kind::DistributionFree | Kind::ModelBased => at_least(row.measured()).to_string(),
    }
}

/// Measured over claimed, a line for each series, and the diagonal. Bounds that assume nothing are filled points, and one above the diagonal refutes its claim; what rests on a model, and estimates, are rings, and refute nothing.
fn plot(rows: &[Row]) -> String {
    let points: Vec<(&Row, f64, f64)> = rows
        .iter()
        .filter_map(|row| {
            let claimed = row.claimed().filter(|_| !row.beside_the_claim())?;
            (claimed.is_finite() && row.measured().is_finite())
                .then(|| (row, claimed, row.measured()))
        })
        .collect();
    if points.is_empty() {
        return String::new();
    }
    let largest = |values: &mut dyn Iterator<Item = f64>| {
        let largest = values.fold(0.0, f64::max);
        if largest > 0.0 { 1.05 * largest } else { 1.0 }
    };
    let x_max = largest(&mut points.iter().map(|point| point.1));
    let y_max = largest(&mut points.iter().flat_map(|point| [point.1, point.2]));
    let (left, right, top, bottom) = MARGIN;
    let place = |x: f64, y: f64| {
        (
            left + x / x_max * (SIZE.0 - left - right),
            SIZE.1 - bottom - y / y_max * (SIZE.1 - top - bottom),
        )
    };
    let mut svg = format!(
        "<svg viewBox=\"0 0 {} {}\" width=\"{}\" role=\"img\" aria-label=\"measured over claimed epsilon\">\n",
        SIZE.0, SIZE.1, SIZE.0
    );
    let mut line = |from: (f64, f64), to: (f64, f64), style: &str| {
        let ((x1, y1), (x2, y2)) = (from, to);
        let _ = writeln!(
            svg,
            "<line x1=\"{x1:.1}\" y1=\"{y1:.1}\" x2=\"{x2:.1}\" y2=\"{y2:.1}\" {style}/>"
        );
    };
    line(place(0.0, 0.0), place(x_max, 0.0), "stroke=\"#333\"");
    line(place(0.0, 0.0), place(0.0, y_max), "stroke=\"#333\"");
    let end = x_max.min(y_max);
    line(
        place(0.0, 0.0),
        place(end, end),
        "stroke=\"#999\" stroke-dasharray=\"5 4\"",
    );
    for tick in 1..=4 {
        let share = f64::from(tick) / 4.0;
        let (x, y) = (place(x_max * share, 0.0), place(0.0, y_max * share));
        let _ = writeln!(
            svg,
            "<text x=\"{:.1}\" y=\"{:.1}\" text-anchor=\"middle\">{}</text>\n<text x=\"{:.1}\" y=\"{:.1}\" text-anchor=\"end\">{}</text>",
            x.0,
            x.1 + 16.0,
            number(x_max * share),
            y.0 - 6.0,
            y.1 + 4.0,
            number(y_max * share)
        );
    }
    let _ = writeln!(
        svg,
        "<text x=\"{:.1}\" y=\"{:.1}\" text-anchor=\"middle\">claimed epsilon; above the dashed line a filled point refutes its claim</text>",
        SIZE.0 / 2.0,
        SIZE.1 - 8.0
    );
    let mut series: Vec<Option<&str>> = points.iter().map(|point| point.0.series()).collect();
    series.sort_unstable();
    series.dedup();
    for (name, colour) in series.iter().zip(COLOURS.iter().cycle()) {
        let mut own: Vec<&(&Row, f64, f64)> = points
            .iter()
            .filter(|point| point.0.series() == *name)
            .collect();
        own.sort_by(|a, b| a.1.total_cmp(&b.1));
        if name.is_some() {
            let path: Vec<String> = own
                .iter()
                .map(|point| {
                    let (x, y) = place(point.1, point.2);
                    format!("{x:.1},{y:.1}")
                })
                .collect();
            let _ = writeln!(
                svg,
                "<polyline points=\"{}\" fill=\"none\" stroke=\"{colour}\"/>",
                path.join(" ")
            );
        }
        for (row, claimed, height) in own {
            let (x, y) = place(*claimed, *height);
            let fill = match row.verdict() {
                Some(Ruling::Violated) => "#b00020",
                Some(_) => colour,
                None => "none",
            };
            let _ = writeln!(
                svg,
                "<circle cx=\"{x:.1}\" cy=\"{y:.1}\" r=\"4\" fill=\"{fill}\" stroke=\"{colour}\"><title>{}: {} of {}</title></circle>",
                escape(row.attack()),
                self::measured(row),
                number(*claimed)
            );
        }
    }
    for (at, (name, colour)) in series.iter().zip(COLOURS.iter().cycle()).enumerate() {
        if let Some(name) = name {
            let y = top + 14.0 * (at as f64 + 1.0);
            let _ = writeln!(
                svg,
                "<text x=\"{:.1}\" y=\"{y:.1}\" style=\"fill:{colour}\">{}</text>",
                left + 10.0,
                escape(name)
            );
        }
    }
    svg.push_str("</svg>\n");
    svg
}

/// Three digits behind the point are more than any audit knows.
fn number(value: f64) -> String {
    let text = format!("{value:.3}");
    let text = text.trim_end_matches('0').trim_end_matches('.');
    text.to_owned()
}

fn escape(text: &str) -> String {
    let mut safe = String::with_capacity(text.len());
    for c in text.chars() {
        match c {
            '&' => safe.push_str("&amp;"),
            '<' => safe.push_str("&lt;"),
            '>' => safe.push_str("&gt;"),
            '"' => safe.push_str("&quot;"),
            '\'' => safe.push_str("&#39;"),
            c if c.is_control() => safe.push(' '),
            c => safe.push(c),
        }
    }
    safe
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::report::tests::row;

    #[test]
    fn a_page_needs_nothing_from_outside() {
        let rows = vec![
            row((900, 100), 1000, Some(1.0)).in_series("coins"),
            row((600, 400), 1000, Some(2.0)).in_series("coins"),
            row((600, 400), 1000, None),
        ];
        let page = Report::new("An audit", rows).to_html();
        for outside in [
            "<script", "http:", "https:", "<link", "<img", "@import", "url(",
        ] {
            assert!(!page.contains(outside), "{outside}");
        }
        assert_eq!(page.matches("<circle").count(), 2, "a point for each claim");
        assert_eq!(page.matches("<polyline").count(), 1);
        assert_eq!(page.matches("<tr>").count(), 4);
        assert!(page.contains("class=\"violated\">violated<"));
    }

    /// Points above the line that refute nothing are rings, and the words beside them say so.
    #[test]
    fn what_the_plot_says_of_a_point_is_true() {
        let curve = |epsilon| if epsilon < 50.0 { 1.0 } else { 0.0 };
        let alpha = crate::Alpha::new(0.01).expect("in range");
        let model = crate::ModelBound::of_curve("a shape", whit_core::Delta::ZERO, alpha, curve);
        let claim = crate::Claim::pure(whit_core::Epsilon::new(1.0).expect("not negative"));
        let rows = vec![
            Row::of_model("fitted", &model, Some(claim)),
            row((900, 100), 1000, Some(1.0)),
        ];
        let page = Report::new("Rings", rows).to_html();
        assert_eq!(
            page.matches("fill=\"none\" stroke=\"#0a4696\"><title>")
                .count(),
            1
        );
        assert_eq!(page.matches("fill=\"#b00020\"").count(), 1);
        assert!(page.contains("a filled point refutes its claim"));
    }

    #[test]
    fn a_report_says_what_was_run() {
        let report = Report::new("An audit", vec![row((900, 100), 1000, Some(1.0))])
            .with_setting("command", "python3 <mine>.py {}");
        let page = report.to_html();
        assert!(page.contains("<tr><th>command</th><td>python3 &lt;mine&gt;.py {}</td></tr>"));
        let json = serde_json::to_value(&report).expect("numbers and strings");
        assert_eq!(json["settings"]["command"], "python3 <mine>.py {}");
    }

    #[test]
    fn names_cannot_become_markup() {
        let page = Report::new("<script>alert(1)</script>", vec![]).to_html();
        assert!(!page.contains("<script") && page.contains("&lt;script&gt;"));
        assert!(!page.contains("<svg"), "nothing to plot");
    }

    #[test]
    fn numbers_are_short() {
        assert_eq!(
            [1.0, 0.5, 1234.5678, 0.0].map(number),
            ["1", "0.5", "1234.568", "0"]
        );
    }
}

//! Names and numbers as a card prints them.

use std::fmt::Write;

pub(crate) fn line(text: &mut String, line: &str) {
    writeln!(text, "{line}").expect("a string takes any text");
}

/// A text of the plan as one line that has no meaning to Markdown.
pub(crate) fn inline(text: &str) -> String {
    let mut plain = String::with_capacity(text.len());
    for letter in text.chars() {
        match letter {
            '\\' | '|' | '`' | '*' | '_' | '[' | ']' | '#' => plain.extend(['\\', letter]),
            '<' => plain.push_str("&lt;"),
            letter if letter.is_control() => plain.push(' '),
            letter => plain.push(letter),
        }
    }
    plain
}

/// Four digits that are not below the value.
pub(crate) fn up(value: f64) -> String {
    digits(value, |shown| shown < value, 1)
}

/// Four digits that are not above the value.
pub(crate) fn down(value: f64) -> String {
    digits(value, |shown| shown > value, -1)
}

/// Four digits, the last moved by `step` if they are `wrong`.
fn digits(value: f64, wrong: impl Fn(f64) -> bool, step: i64) -> String {
    let nearest = format!("{value:.3e}");
    let Some((mantissa, exponent)) = nearest.split_once('e') else {
        // Infinity, or no number.
        return nearest;
    };
    let read = |text: &str| text.parse::<f64>().unwrap_or(f64::NAN);
    if !wrong(read(&nearest)) {
        return read(&nearest).to_string();
    }
    let whole: i64 = mantissa.replace('.', "").parse().unwrap_or(0);
    let exponent: i64 = exponent.parse().unwrap_or(0);
    read(&format!("{}e{}", whole + step, exponent - 3)).to_string()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bounds_are_printed_outward() {
        for value in [
            2.910_000_1,
            2.909_999_9,
            0.123_449,
            9.999_9,
            1e-5,
            3.0,
            123_456.7,
            0.0,
        ] {
            let (low, high) = (down(value), up(value));
            let read = |text: &str| -> f64 { text.parse().expect("a number") };
            assert!(
                read(&low) <= value && value <= read(&high),
                "{low} {value} {high}"
            );
            let width = read(&high) - read(&low);
            assert!(width <= 1.001e-3 * value, "{low} {high}");
        }
        assert_eq!(up(2.910_000_1), "2.911");
        assert_eq!(down(2.910_000_1), "2.91");
        assert_eq!(up(9.999_9), "10");
        assert_eq!(up(1e-5), "0.00001");
        assert_eq!(up(f64::INFINITY), "inf");
    }
}

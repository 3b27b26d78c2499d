//! The bundled data: the Adult data set, also known as Census Income (`data/LICENSE-adult.md`).

use std::io::Read;

use flate2::read::GzDecoder;

/// Whose data it is.
pub(crate) const CREDIT: &str = "Adult (Census Income), Becker and Kohavi 1996, UCI, CC BY 4.0";

const COMPRESSED: &[u8] = include_bytes!("../data/adult.csv.gz");

/// The data as CSV.
pub(crate) fn open() -> impl Read {
    GzDecoder::new(COMPRESSED)
}

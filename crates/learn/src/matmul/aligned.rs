//! Floats from the start of a cache line on.
//!
//! A vector of AVX-512 fills a line. One that straddles two takes the time of two loads, and a product loads one vector for
//! every eight multiply-adds: two thirds of its speed were seen without this.

/// Floats of a cache line.
const LINE: usize = 16;

/// A list of floats whose first is the first of a line. It keeps its memory.
#[derive(Default)]
pub(super) struct Aligned {
    floats: Vec<f32>,
    start: usize,
    len: usize,
}

impl Aligned {
    /// So many floats. What they hold is whatever was there: the caller writes all of them.
    pub(super) fn sized(&mut self, len: usize) {
        if self.floats.len() < len + LINE {
            self.floats.clear();
            self.floats.resize(len + LINE, 0.0);
        }
        // Never more than a line; if it could not be found, it would only be slower.
        self.start = self.floats.as_ptr().align_offset(4 * LINE).min(LINE);
        self.len = len;
    }

    pub(super) fn as_slice(&self) -> &[f32] {
        &self.floats[self.start..self.start + self.len]
    }

    pub(super) fn as_mut_slice(&mut self) -> &mut [f32] {
        &mut self.floats[self.start..self.start + self.len]
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_first_float_is_the_first_of_a_line() {
        let mut aligned = Aligned::default();
        for len in [1, 1000, 7, 0, 5000] {
            aligned.sized(len);
            assert_eq!(aligned.as_slice().len(), len);
            assert_eq!(aligned.as_mut_slice().as_ptr().align_offset(64), 0);
        }
    }
}

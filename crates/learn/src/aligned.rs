//! Floats from the start of a cache line on.
//!
//! A vector of AVX-512 fills a line. One that straddles two takes the time of two loads, and a product loads one vector for
//! every eight multiply-adds: two thirds of its speed were seen without this.

use std::ops::{Deref, DerefMut};

/// Floats of a cache line.
const LINE: usize = 16;

/// A list of floats whose first is the first of a line, with a line to spare after its last. It keeps its memory.
#[derive(Default)]
pub struct Aligned {
    floats: Vec<f32>,
    start: usize,
    len: usize,
}

impl Aligned {
    /// So many zeros.
    pub(crate) fn zeros(len: usize) -> Self {
        let mut aligned = Self::default();
        aligned.sized(len);
        aligned
    }

    /// A copy.
    pub(crate) fn copied(floats: &[f32]) -> Self {
        let mut aligned = Self::zeros(floats.len());
        aligned.copy_from_slice(floats);
        aligned
    }

    /// So many floats. What they hold is whatever was there: the caller writes all of them.
    pub(crate) fn sized(&mut self, len: usize) -> &mut [f32] {
        if self.floats.len() < len + 2 * LINE {
            self.floats.clear();
            self.floats.resize(len + 2 * LINE, 0.0);
        }
        // Never more than a line; if it could not be found, it would only be slower.
        self.start = self.floats.as_ptr().align_offset(4 * LINE).min(LINE);
        self.len = len;
        self
    }

    /// The floats and a line of others after them, for vectors that begin among them and end beyond.
    pub(crate) fn with_spare(&self) -> &[f32] {
        match self.len {
            0 => &[],
            len => &self.floats[self.start..self.start + len + LINE],
        }
    }
}

impl Deref for Aligned {
    type Target = [f32];

    fn deref(&self) -> &[f32] {
        &self.floats[self.start..self.start + self.len]
    }
}

impl DerefMut for Aligned {
    fn deref_mut(&mut self) -> &mut [f32] {
        &mut self.floats[self.start..self.start + self.len]
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_first_float_is_the_first_of_a_line() {
        let mut aligned = Aligned::default();
        assert!(aligned.is_empty() && aligned.with_spare().is_empty());
        for len in [1, 1000, 7, 0, 5000] {
            aligned.sized(len).fill(1.0);
            assert_eq!(aligned.len(), len);
            assert_eq!(aligned.as_ptr().align_offset(64), 0);
            let spare = aligned.with_spare();
            assert!(len == 0 || spare.len() == len + LINE && spare[..len] == aligned[..]);
        }
        assert_eq!(Aligned::copied(&[1.0, 2.0])[..], [1.0, 2.0]);
    }
}

//! # Scattering
//! **Definition.** Of a picture `x`: its local mean `x ⋆ φ`, and `|x ⋆ ψ| ⋆ φ` and `||x ⋆ ψ| ⋆ ψ'| ⋆ φ` for wavelets `ψ` of `L` angles and the scales `1, 2, …, 2^(J-1)`, and
//! `ψ'` of a larger scale than `ψ`; all at every `2^J`-th pixel. `filter.rs` says what the filters are. [Mal12, OM15]
//!
//! **Privacy.** It needs none. The map is fixed and public: wavelets depend on the sides of pictures, `J` and `L`, never on data. It maps one example
//! to one example, so that data which differ in one example before it differ in one after it, under each of the neighbour relations: a mechanism on
//! the features has the guarantee that it states, for the pictures. [TB21, Sec. 3] What is learnt from examples, such as a mean by which features
//! are shifted, has no place here.
//!
//! **Invariant.** This argument is about programs, too: an example's features are bitwise a function of that example alone. Each picture has a lane
//! of its own, no operation crosses lanes, and the same operations are done in all of them, whatever is in the others, how many pictures there are and on how
//! many threads.
//!
//! **Numbers.** Those of kymatio 0.3 [AAE+20] to 1e-5 of the largest, in single precision; pixels should be of ordinary size, between 1e-15 and 1e15. A number that is not
//! finite spoils its own picture only.
//!
//! **Speed.** Padded sides that are products of 2, 4 or 8 with 3, 5, 9 or their products are fastest, as are 36 and 40 of sides of 28 and 32;
//! another power of a prime takes a time that grows with its square.

mod cascade;
mod filter;
mod fourier;

use std::num::NonZeroUsize;
use std::sync::{Mutex, PoisonError};

use pulp::Arch;
use whit_mechanism::crew::each;

use crate::error::{Error, Result, within};
use cascade::{Cascade, Pictures, Space};

/// Sides of at most this many pixels, and as many scales and angles: beyond them filters alone would fill the memory.
pub(crate) const SIDE_MAX: usize = 1024;
const LEVELS_MAX: usize = 8;
const ANGLES_MAX: usize = 64;

/// Pictures that a thread takes at once: whole vectors, and enough of them that threads seldom meet.
const SHARE: usize = 64;

/// The transform for pictures of one size.
pub struct Scattering {
    cascade: Cascade,
    pixels: usize,
}

impl Scattering {
    /// For pictures of one channel with so many rows and columns, `J` scales (2 is usual) and `L` angles (8 is usual).
    pub fn new(height: usize, width: usize, levels: usize, angles: usize) -> Result<Self> {
        Self::shape(height, width, levels, angles)?;
        Ok(Self {
            cascade: Cascade::new([height, width], levels, angles),
            pixels: height * width,
        })
    }

    /// What [`Self::output_shape`] will be, without the filters.
    pub fn shape(height: usize, width: usize, levels: usize, angles: usize) -> Result<[usize; 3]> {
        let fits = |x: usize, most: usize| (1..=most).contains(&x);
        within(
            "levels",
            levels as f64,
            fits(levels, LEVELS_MAX),
            "from 1 to 8",
        )?;
        within(
            "angles",
            angles as f64,
            fits(angles, ANGLES_MAX),
            "from 1 to 64",
        )?;
        for (what, side) in [
            ("the height of pictures", height),
            ("the width of pictures", width),
        ] {
            within(what, side as f64, side <= SIDE_MAX, "at most 1024")?;
        }
        // The padding, which is at most 2^levels, is a reflection that does not double the edge.
        let least = (1 << levels) + 1;
        if height.min(width) < least {
            return Err(Error::SmallPicture {
                height,
                width,
                levels,
                least,
            });
        }
        let channels = 1 + angles * levels + angles * angles * (levels * (levels - 1) / 2);
        Ok([channels, height >> levels, width >> levels])
    }

    /// Channels of one channel: `1 + LJ + L²J(J-1)/2`.
    pub fn channels(&self) -> usize {
        self.cascade.channels()
    }

    /// Channels, rows and columns of what becomes of one channel of a picture.
    pub fn output_shape(&self) -> [usize; 3] {
        let [rows, columns] = self.cascade.out();
        [self.channels(), rows, columns]
    }

    /// Transforms pictures that stand one after the other, row by row. Each channel of a picture in colours is transformed as a picture
    /// of its own.
    pub fn transform(&self, images: &[f32], out: &mut [f32]) -> Result<()> {
        self.transform_on(NonZeroUsize::MIN, images, out)
    }

    /// The same on at most so many threads, with the same bits.
    pub fn transform_on(
        &self,
        threads: NonZeroUsize,
        images: &[f32],
        out: &mut [f32],
    ) -> Result<()> {
        let features: usize = self.output_shape().iter().product();
        let pictures = images.len() / self.pixels;
        if images.len() != pictures * self.pixels || out.len() != pictures * features {
            return Err(Error::OtherPictures {
                pixels: self.pixels,
                features,
            });
        }
        let shares = images.chunks(SHARE * self.pixels);
        let spaces = Mutex::new(Vec::<Space>::new());
        let spaces = || spaces.lock().unwrap_or_else(PoisonError::into_inner);
        each(
            threads.get(),
            shares.zip(out.chunks_mut(SHARE * features)),
            |(images, out)| {
                let mut space = spaces().pop().unwrap_or_default();
                Arch::new().dispatch(Pictures {
                    cascade: &self.cascade,
                    images,
                    out,
                    space: &mut space,
                });
                spaces().push(space);
            },
        );
        Ok(())
    }
}

#[cfg(test)]
#[path = "scatter_test.rs"]
mod tests;

//! The cascade: wavelet, modulus, wavelet, modulus, and a low pass after each, of as many pictures at once as a vector has lanes.
//!
//! A picture is padded by reflection. What is transformed is real, so that two columns share a transform and half of the spectrum is kept.
//! A wavelet multiplies the spectrum by real weights; the frequencies that a coarser grid cannot tell apart are summed, which is to keep
//! every second pixel. The low pass, the choice of pixels and the removal of the padding are one linear map along each side.

use pulp::{Simd, WithSimd};

use super::filter::{Response, low_pass};
use super::fourier::{Complex, Direction, Fourier, apart};
use crate::aligned::Aligned;

/// Weights of a wavelet below this share of its largest, which is about 1, are left out. By Cauchy and Schwarz, and Parseval, that changes a
/// pixel by at most this times the Euclidean norm of the picture, which is less than the rounding of single precision.
const NEGLIGIBLE: f64 = 1e-9;

/// All that does not depend on pictures.
pub(super) struct Cascade {
    /// Of a picture.
    pixels: usize,
    width: usize,
    /// Where the padded rows and columns come from.
    rows: Vec<usize>,
    columns: Vec<usize>,
    levels: Vec<Level>,
    /// For each level the wavelets that are applied there, with the level that they lead to: those of larger scale, at level 0 of all.
    wavelets: Vec<Vec<(usize, Wavelet)>>,
    /// Rows and columns of what comes out.
    out: [usize; 2],
}

impl Cascade {
    pub(super) fn new([height, width]: [usize; 2], levels: usize, angles: usize) -> Self {
        let padded = [height, width].map(|side| padded(side, levels));
        let mut wavelets: Vec<Vec<_>> = (0..levels).map(|_| Vec::new()).collect();
        for scale in 0..levels {
            for angle in 0..angles {
                let response = Response::morlet(padded, scale, angle, angles);
                // A wavelet of scale `2^scale` is applied at level 0 and at each level below its own.
                for (level, wavelets) in wavelets.iter_mut().enumerate() {
                    if level == 0 || level < scale {
                        let sides = padded.map(|side| side >> level);
                        let wavelet = Wavelet::new(&response.at_level(level), sides, scale - level);
                        wavelets.push((scale, wavelet));
                    }
                }
            }
        }
        Self {
            pixels: height * width,
            width,
            rows: reflection(height, padded[0]),
            columns: reflection(width, padded[1]),
            levels: (0..levels)
                .map(|level| Level::new(padded, level, levels))
                .collect(),
            wavelets,
            out: padded.map(|side| (side >> levels) - 2),
        }
    }

    pub(super) fn out(&self) -> [usize; 2] {
        self.out
    }

    /// The mean, one for each wavelet, and one for each two of them that follow each other.
    pub(super) fn channels(&self) -> usize {
        let first = &self.wavelets[0];
        let second = first.iter().map(|&(level, _)| self.after(level).count());
        1 + first.len() + second.sum::<usize>()
    }

    /// The wavelets that follow one which led to this level.
    fn after(&self, level: usize) -> impl Iterator<Item = &(usize, Wavelet)> {
        let larger = move |&&(scale, _): &&(usize, Wavelet)| scale > level;
        self.wavelets[level].iter().filter(larger)
    }
}

/// A side with its padding: at least one pixel of the output at each end.
fn padded(side: usize, levels: usize) -> usize {
    let step = 1 << levels;
    (side / step + 2) * step
}

/// Which pixel stands at each place of a padded side; the first and the last are not doubled.
fn reflection(side: usize, padded: usize) -> Vec<usize> {
    let before = (padded - side) / 2;
    let place = |at: usize| {
        let at = at.abs_diff(before);
        at.min((2 * (side - 1)).saturating_sub(at))
    };
    (0..padded).map(place).collect()
}

/// Transforms and low pass of the pictures whose sides were halved so often.
struct Level {
    height: usize,
    width: usize,
    rows_forward: Fourier,
    rows_inverse: Fourier,
    columns_forward: Fourier,
    columns_inverse: Fourier,
    low_rows: LowPass,
    low_columns: LowPass,
}

impl Level {
    fn new(padded: [usize; 2], level: usize, levels: usize) -> Self {
        let [height, width] = padded.map(|side| side >> level);
        Self {
            height,
            width,
            rows_forward: Fourier::new(width, Direction::Forward, 1),
            rows_inverse: Fourier::new(width, Direction::Inverse, 1),
            columns_forward: Fourier::new(height, Direction::Forward, 1),
            columns_inverse: Fourier::new(height, Direction::Inverse, width),
            low_rows: LowPass::new(&low_pass(padded[1], level, levels)),
            low_columns: LowPass::new(&low_pass(padded[0], level, levels)),
        }
    }
}

/// A wavelet from one level to the next or a later one, as weights of half a spectrum.
struct Wavelet {
    /// For each row of the outcome in its upper half: how many of the pairs end with it.
    rows: Vec<usize>,
    pairs: Vec<Pair>,
    terms: Vec<Term>,
}

/// Two frequencies of the outcome, one the negative of the other: they are sums of the same entries.
struct Pair {
    at: u32,
    mirror: u32,
    /// How many of their terms are entries of the half that is kept, and how many come from the other half, as conjugates.
    upright: u32,
    mirrored: u32,
}

/// An entry of the half spectrum with its weights in both.
struct Term {
    place: u32,
    at: f32,
    mirror: f32,
}

impl Wavelet {
    /// For spectra of these sides, to a grid whose sides are `2^coarser` times shorter.
    fn new(response: &Response, [height, width]: [usize; 2], coarser: usize) -> Self {
        let (rows_out, columns_out) = (height >> coarser, width >> coarser);
        // Spectra are kept twofold, and no transform divides by its length.
        let size = 0.5 / (height * width) as f64;
        let least = NEGLIGIBLE * response.largest();
        let minus = |at: usize, side: usize| (side - at) % side;
        let mut wavelet = Self {
            rows: Vec::new(),
            pairs: Vec::new(),
            terms: Vec::new(),
        };
        for row in 0..=rows_out / 2 {
            for column in 0..columns_out {
                let mirror = [minus(row, rows_out), minus(column, columns_out)];
                if mirror[0] == row && mirror[1] < column {
                    continue;
                }
                let mut terms: [Vec<Term>; 2] = Default::default();
                for row in (row..height).step_by(rows_out) {
                    for column in (column..width).step_by(columns_out) {
                        let negative = [minus(row, height), minus(column, width)];
                        let weights = [
                            response.at(row, column),
                            response.at(negative[0], negative[1]),
                        ];
                        if weights.iter().all(|weight| weight.abs() <= least) {
                            continue;
                        }
                        let kept = row <= height / 2;
                        let [row, column] = if kept { [row, column] } else { negative };
                        terms[usize::from(!kept)].push(Term {
                            place: (row * width + column) as u32,
                            at: (size * weights[0]) as f32,
                            mirror: (size * weights[1]) as f32,
                        });
                    }
                }
                let [upright, mirrored] = terms;
                wavelet.pairs.push(Pair {
                    at: (row * columns_out + column) as u32,
                    mirror: (mirror[0] * columns_out + mirror[1]) as u32,
                    upright: upright.len() as u32,
                    mirrored: mirrored.len() as u32,
                });
                wavelet.terms.extend(upright);
                wavelet.terms.extend(mirrored);
            }
            wavelet.rows.push(wavelet.pairs.len());
        }
        wavelet
    }

    /// These pairs, from the terms on that are left; returns what is left after them.
    #[inline(always)]
    fn row<'a, S: Simd>(
        simd: S,
        pairs: &[Pair],
        mut terms: &'a [Term],
        spectrum: &[Complex<S>],
        field: &mut [Complex<S>],
    ) -> &'a [Term] {
        for pair in pairs {
            let (upright, rest) = terms.split_at(pair.upright as usize);
            let (mirrored, rest) = rest.split_at(pair.mirrored as usize);
            terms = rest;
            let [mut at, mut mirror] = [[simd.splat_f32s(0.0); 2]; 2];
            for term in upright {
                let [real, imaginary] = spectrum[term.place as usize];
                let weight = simd.splat_f32s(term.at);
                at[0] = simd.mul_add_e_f32s(weight, real, at[0]);
                at[1] = simd.mul_add_e_f32s(weight, imaginary, at[1]);
                let weight = simd.splat_f32s(term.mirror);
                mirror[0] = simd.mul_add_e_f32s(weight, real, mirror[0]);
                mirror[1] = simd.negate_mul_add_e_f32s(weight, imaginary, mirror[1]);
            }
            for term in mirrored {
                let [real, imaginary] = spectrum[term.place as usize];
                let weight = simd.splat_f32s(term.at);
                at[0] = simd.mul_add_e_f32s(weight, real, at[0]);
                at[1] = simd.negate_mul_add_e_f32s(weight, imaginary, at[1]);
                let weight = simd.splat_f32s(term.mirror);
                mirror[0] = simd.mul_add_e_f32s(weight, real, mirror[0]);
                mirror[1] = simd.mul_add_e_f32s(weight, imaginary, mirror[1]);
            }
            field[pair.at as usize] = at;
            field[pair.mirror as usize] = mirror;
        }
        terms
    }
}

/// A small dense product.
struct LowPass {
    outputs: usize,
    blocks: Vec<Block>,
}

/// Some of its outputs, whose sums fit in the registers.
struct Block {
    first: usize,
    outputs: usize,
    /// For each input the weights in all outputs.
    weights: Vec<f32>,
}

impl LowPass {
    fn new(rows: &[Vec<f64>]) -> Self {
        let mut blocks = Vec::new();
        let mut first = 0;
        while first < rows.len() {
            let outputs = match rows.len() - first {
                8.. => 8,
                7 => 7,
                4.. => 4,
                2.. => 2,
                _ => 1,
            };
            let rows = &rows[first..first + outputs];
            let weights = (0..rows[0].len()).flat_map(|at| rows.iter().map(move |row| row[at]));
            blocks.push(Block {
                first,
                outputs,
                weights: weights.map(|weight| weight as f32).collect(),
            });
            first += outputs;
        }
        Self {
            outputs: rows.len(),
            blocks,
        }
    }

    /// Of two lists of numbers side by side.
    #[inline(always)]
    fn apply<S: Simd>(
        &self,
        simd: S,
        x: impl Fn(usize) -> Complex<S>,
        mut out: impl FnMut(usize, Complex<S>),
    ) {
        for block in &self.blocks {
            match block.outputs {
                8 => block.apply::<S, 8>(simd, &x, &mut out),
                7 => block.apply::<S, 7>(simd, &x, &mut out),
                4 => block.apply::<S, 4>(simd, &x, &mut out),
                2 => block.apply::<S, 2>(simd, &x, &mut out),
                _ => block.apply::<S, 1>(simd, &x, &mut out),
            }
        }
    }
}

impl Block {
    #[inline(always)]
    fn apply<S: Simd, const N: usize>(
        &self,
        simd: S,
        x: &impl Fn(usize) -> Complex<S>,
        out: &mut impl FnMut(usize, Complex<S>),
    ) {
        let mut sums = [[simd.splat_f32s(0.0); 2]; N];
        for (at, weights) in self.weights.as_chunks::<N>().0.iter().enumerate() {
            let x = x(at);
            for (sum, &weight) in sums.iter_mut().zip(weights) {
                let weight = simd.splat_f32s(weight);
                sum[0] = simd.mul_add_e_f32s(weight, x[0], sum[0]);
                sum[1] = simd.mul_add_e_f32s(weight, x[1], sum[1]);
            }
        }
        for (at, sum) in sums.into_iter().enumerate() {
            out(self.first + at, sum);
        }
    }
}

/// Memory of a thread, kept from one group of pictures to the next.
#[derive(Default)]
pub(super) struct Space {
    pictures: Aligned,
    spectrum: Aligned,
    next_spectrum: Aligned,
    field: Aligned,
    columns: Aligned,
    low: Aligned,
    coefficients: Aligned,
}

/// Pictures and room for what becomes of them; as many are taken at once as a vector has lanes.
pub(super) struct Pictures<'a> {
    pub(super) cascade: &'a Cascade,
    pub(super) images: &'a [f32],
    pub(super) out: &'a mut [f32],
    pub(super) space: &'a mut Space,
}

impl WithSimd for Pictures<'_> {
    type Output = ();

    #[inline(always)]
    fn with_simd<S: Simd>(self, simd: S) {
        let cascade = self.cascade;
        let features = cascade.channels() * cascade.out[0] * cascade.out[1];
        let pictures = self.images.chunks(S::F32_LANES * cascade.pixels);
        let out = self.out.chunks_mut(S::F32_LANES * features);
        for (images, out) in pictures.zip(out) {
            let lanes = self.space.pictures.sized(S::F32_LANES * cascade.pixels);
            lanes.fill(0.0);
            to_lanes(images, lanes, S::F32_LANES);
            let mut group = Group::new(cascade, simd, self.space, features);
            group.run();
            from_lanes(&self.space.coefficients, out, S::F32_LANES);
        }
    }
}

/// One picture after the other becomes one pixel of all after the other.
fn to_lanes(images: &[f32], out: &mut [f32], lanes: usize) {
    let pixels = out.len() / lanes;
    for (lane, image) in images.chunks_exact(pixels).enumerate() {
        for (out, &pixel) in out.iter_mut().skip(lane).step_by(lanes).zip(image) {
            *out = pixel;
        }
    }
}

/// The same backwards, for as many lanes as there is room for.
fn from_lanes(lanes: &[f32], out: &mut [f32], count: usize) {
    /// Coefficients that are turned around while they are near.
    const NEAR: usize = 64;
    let features = lanes.len() / count;
    for (block, lanes) in lanes.chunks(NEAR * count).enumerate() {
        for (lane, out) in out.chunks_exact_mut(features).enumerate() {
            let out = &mut out[block * NEAR..];
            for (out, lanes) in out.iter_mut().zip(lanes.chunks_exact(count)) {
                *out = lanes[lane];
            }
        }
    }
}

/// As many pictures as there are lanes, on their way.
struct Group<'a, S: Simd> {
    simd: S,
    cascade: &'a Cascade,
    pictures: &'a [S::f32s],
    spectrum: &'a mut [Complex<S>],
    next_spectrum: &'a mut [Complex<S>],
    work: Work<'a, S>,
}

/// Where a wavelet's outcome is made, and what is kept of it.
struct Work<'a, S: Simd> {
    /// A spectrum, and then its transform along rows.
    field: &'a mut [Complex<S>],
    /// A column, two real columns side by side, and room for a transform.
    column: &'a mut [Complex<S>],
    pair: &'a mut [Complex<S>],
    scratch: &'a mut [Complex<S>],
    /// The low pass along columns, two columns in each number.
    low: &'a mut [Complex<S>],
    coefficients: &'a mut [S::f32s],
}

fn complex<S: Simd>(floats: &mut Aligned, len: usize) -> &mut [Complex<S>] {
    let floats = floats.sized(2 * len * S::F32_LANES);
    S::as_mut_simd_f32s(floats).0.as_chunks_mut::<2>().0
}

impl<'a, S: Simd> Group<'a, S> {
    fn new(cascade: &'a Cascade, simd: S, space: &'a mut Space, features: usize) -> Self {
        let Level { height, width, .. } = cascade.levels[0];
        let half = (height / 2 + 1) * width;
        let longest = height.max(width);
        let (column, rest) = complex::<S>(&mut space.columns, 4 * longest).split_at_mut(longest);
        let (pair, scratch) = rest.split_at_mut(longest);
        let coefficients = space.coefficients.sized(features * S::F32_LANES);
        Self {
            simd,
            cascade,
            pictures: S::as_simd_f32s(&space.pictures).0,
            spectrum: complex::<S>(&mut space.spectrum, half),
            next_spectrum: complex::<S>(&mut space.next_spectrum, half),
            work: Work {
                field: complex::<S>(&mut space.field, height * width),
                column,
                pair,
                scratch,
                low: complex::<S>(&mut space.low, cascade.out[0] * width / 2),
                coefficients: S::as_mut_simd_f32s(coefficients).0,
            },
        }
    }

    /// Channels in the order of paths: none, one wavelet, two.
    #[inline(always)]
    fn run(&mut self) {
        let (simd, cascade, work) = (self.simd, self.cascade, &mut self.work);
        let fine = &cascade.levels[0];
        for number in 0..fine.width / 2 {
            let columns = &cascade.columns[2 * number..][..2];
            for (pair, row) in work.pair.iter_mut().zip(&cascade.rows) {
                let row = &self.pictures[row * cascade.width..];
                *pair = [row[columns[0]], row[columns[1]]];
            }
            work.absorb(simd, fine, number, Some(self.spectrum));
        }
        work.finish(simd, fine, 0, Some(self.spectrum));
        let first = &cascade.wavelets[0];
        let mut next = 1 + first.len();
        for (channel, (level, wavelet)) in first.iter().enumerate() {
            let mut after = cascade.after(*level).peekable();
            let at = &cascade.levels[*level];
            work.field(simd, at, wavelet, self.spectrum);
            let spectrum = after.peek().is_some().then_some(&mut *self.next_spectrum);
            work.modulus(simd, at, 1 + channel, spectrum);
            for (level, wavelet) in after {
                let at = &cascade.levels[*level];
                work.field(simd, at, wavelet, self.next_spectrum);
                work.modulus(simd, at, next, None);
                next += 1;
            }
        }
    }
}

impl<S: Simd> Work<'_, S> {
    /// A wavelet's outcome, transformed back along rows.
    #[inline(always)]
    fn field(&mut self, simd: S, level: &Level, wavelet: &Wavelet, spectrum: &[Complex<S>]) {
        let (mut start, mut terms) = (0, &wavelet.terms[..]);
        for (row, &end) in wavelet.rows.iter().enumerate() {
            let field = &mut *self.field;
            terms = apart(
                simd,
                #[inline(always)]
                || Wavelet::row(simd, &wavelet.pairs[start..end], terms, spectrum, field),
            );
            start = end;
            let mirror = (level.height - row) % level.height;
            for row in [row, mirror]
                .into_iter()
                .take(1 + usize::from(row != mirror))
            {
                let row = &mut self.field[row * level.width..][..level.width];
                level.rows_inverse.run_in_place(simd, row, self.scratch);
            }
        }
    }

    /// The modulus of the field, and what is kept of it.
    #[inline(always)]
    fn modulus(
        &mut self,
        simd: S,
        level: &Level,
        channel: usize,
        mut spectrum: Option<&mut [Complex<S>]>,
    ) {
        for number in 0..level.width / 2 {
            for side in [0, 1] {
                let field = &self.field[2 * number + side..];
                let columns = &level.columns_inverse;
                columns.run(simd, field, self.column, self.scratch);
                let column = &self.column[..level.height];
                let pair = &mut *self.pair;
                apart(
                    simd,
                    #[inline(always)]
                    || {
                        for (pair, &x) in pair.iter_mut().zip(column) {
                            pair[side] = modulus(simd, x);
                        }
                    },
                );
            }
            self.absorb(simd, level, number, spectrum.as_deref_mut());
        }
        self.finish(simd, level, channel, spectrum);
    }

    /// Two real columns: their low pass, and their spectrum if it is wanted.
    #[inline(always)]
    fn absorb(
        &mut self,
        simd: S,
        level: &Level,
        number: usize,
        spectrum: Option<&mut [Complex<S>]>,
    ) {
        let (pair, low) = (&self.pair[..level.height], &mut *self.low);
        apart(
            simd,
            #[inline(always)]
            || {
                level.low_columns.apply(
                    simd,
                    #[inline(always)]
                    |at| pair[at],
                    #[inline(always)]
                    |at, sum| low[at * (level.width / 2) + number] = sum,
                );
            },
        );
        let Some(spectrum) = spectrum else { return };
        level
            .columns_forward
            .run(simd, self.pair, self.column, self.scratch);
        let column = &self.column[..level.height];
        apart(
            simd,
            #[inline(always)]
            || {
                for (at, row) in spectrum.chunks_exact_mut(level.width).enumerate() {
                    if at > level.height / 2 {
                        break;
                    }
                    // With z = x + iy, the spectrum of x is twice (z(k) + z(-k)*)/2, that of y twice (z(k) - z(-k)*)/2i.
                    let ([a, b], [c, d]) = (column[at], column[(level.height - at) % level.height]);
                    row[2 * number] = [simd.add_f32s(a, c), simd.sub_f32s(b, d)];
                    row[2 * number + 1] = [simd.add_f32s(b, d), simd.sub_f32s(c, a)];
                }
            },
        );
    }

    /// When all columns were absorbed: the low pass along rows is a channel, and the spectrum is transformed along rows.
    #[inline(always)]
    fn finish(
        &mut self,
        simd: S,
        level: &Level,
        channel: usize,
        spectrum: Option<&mut [Complex<S>]>,
    ) {
        let [rows, columns] = [level.low_columns.outputs, level.low_rows.outputs];
        let low = self.low.as_flattened();
        let out = &mut self.coefficients[channel * rows * columns..][..rows * columns];
        apart(
            simd,
            #[inline(always)]
            || {
                for first in (0..rows).step_by(2) {
                    // The last row is its own neighbour if it has no other.
                    let second = (first + 1).min(rows - 1);
                    level.low_rows.apply(
                        simd,
                        #[inline(always)]
                        |at| {
                            [
                                low[first * level.width + at],
                                low[second * level.width + at],
                            ]
                        },
                        #[inline(always)]
                        |at, [x, y]| {
                            out[first * columns + at] = x;
                            out[second * columns + at] = y;
                        },
                    );
                }
            },
        );
        if let Some(spectrum) = spectrum {
            for row in
                spectrum[..(level.height / 2 + 1) * level.width].chunks_exact_mut(level.width)
            {
                level.rows_forward.run_in_place(simd, row, self.scratch);
            }
        }
    }
}

/// `√(re² + im²)` by the processor's root: a guess from the bits and two steps of Newton's were no faster for 28x28, and 3 to 10% for 32x32.
#[inline(always)]
fn modulus<S: Simd>(simd: S, [real, imaginary]: Complex<S>) -> S::f32s {
    simd.sqrt_f32s(simd.mul_add_e_f32s(real, real, simd.mul_f32s(imaginary, imaginary)))
}

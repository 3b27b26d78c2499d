//! Every outcome of the coins.
//!
//! **Definition.** A sampler is a function of the words it reads. Those words form a tree with `2^W` branches at
//!   each node; a path on which the sampler stops after `m` words is a leaf of mass `2^-(W·m)`. Leaves up to a
//!   given depth are gathered by output. The mass of the paths that go deeper is *unresolved*.
//! **Guarantee.** The sampler outputs `y` with a probability between `mass(y)` and `mass(y) + unresolved`, exactly.
//! **Proof.** The leaves are disjoint events of the coins. Those that output `y` are part of the event "the output
//!   is `y`", and the rest of it lies on unresolved paths. All masses sum to one, which is asserted.
//! **Completeness.** An output that should have occurred and never did need not be listed: if its probability
//!   exceeds the unresolved mass, some other output has more mass than it should, and that one is found.
//! **Cost.** One run of the sampler per leaf and per unresolved path, hence at most `2^bits`. Paths are walked in
//!   lexicographic order: after each run the last word that was read is increased, and new words start at zero.
//!
//! This is the strongest test there is for a sampler: no luck is involved, and a wrong last bit is as visible as a
//! wrong first.

use std::collections::BTreeMap;

use dashu_int::{IBig, UBig};
use dashu_ratio::RBig;
use whit_core::Bits;

/// So that sums and products of two masses fit into 64 and 128 bits.
const BITS_MAX: u32 = 62;

/// A stream of words that were written down before, of `W` bits each, from 1 to 64.
///
/// Behind the script a tape goes on with pseudo-random words, so that a sampler which rejects and tries again comes
/// to an end, and remembers that it was read too far.
#[derive(Clone, Debug)]
pub struct Tape<const W: u32> {
    words: Vec<u64>,
    /// Up to this length the tape writes its own script, with zeros.
    words_max: usize,
    words_read: usize,
    filler: u64,
}

impl<const W: u32> Tape<W> {
    /// A tape with a script. Of each word only the lowest `W` bits count.
    pub fn new(script: &[u64]) -> Self {
        let words = script.iter().map(|word| word & Self::largest()).collect();
        Self {
            words,
            words_max: script.len(),
            words_read: 0,
            filler: 0,
        }
    }

    fn blank(words_max: usize) -> Self {
        Self {
            words: Vec::with_capacity(words_max),
            words_max,
            words_read: 0,
            filler: 0,
        }
    }

    /// How many words were read, those behind the script included.
    pub fn words_read(&self) -> usize {
        self.words_read
    }

    /// Was it read beyond its script?
    pub fn overrun(&self) -> bool {
        self.words_read > self.words.len()
    }

    const fn largest() -> u64 {
        const { assert!(1 <= W && W <= 64, "a word has from 1 to 64 bits") };
        u64::MAX >> (64 - W)
    }

    fn rewind(&mut self) {
        self.words_read = 0;
        self.filler = 0;
    }

    /// Turns to the next path: the last word that is not yet the largest grows by one, and what comes behind it is
    /// erased. Says whether there was one.
    fn advance(&mut self) -> bool {
        while let Some(word) = self.words.pop() {
            if word < Self::largest() {
                self.words.push(word + 1);
                return true;
            }
        }
        false
    }
}

impl<const W: u32> Bits for Tape<W> {
    const WIDTH: u32 = W;

    #[inline]
    fn word(&mut self) -> u64 {
        let at = self.words_read;
        self.words_read += 1;
        if at < self.words.len() {
            return self.words[at];
        }
        if at < self.words_max {
            self.words.push(0);
            return 0;
        }
        // SplitMix64: good enough to leave a rejection loop, and the same on every run.
        self.filler = self.filler.wrapping_add(0x9E37_79B9_7F4A_7C15);
        let z = (self.filler ^ (self.filler >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
        let z = (z ^ (z >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
        (z ^ (z >> 31)) >> (64 - W)
    }
}

/// Runs the sampler on every path of at most `bits_max` bits.
///
/// # Panics
///
/// If `bits_max` is above 62, or if the sampler is no function of its tape (two runs on the same words went
/// differently).
pub fn enumerate<const W: u32, T: Ord>(
    bits_max: u32,
    mut sampler: impl FnMut(&mut Tape<W>) -> T,
) -> Enumeration<T> {
    assert!(
        bits_max <= BITS_MAX,
        "{bits_max} bits cannot be enumerated; at most {BITS_MAX} can"
    );
    let words_max = bits_max / W;
    let bits = words_max * W;
    let mut masses = BTreeMap::new();
    let mut unresolved = 0;
    let mut tape = Tape::<W>::blank(words_max as usize);
    // At most 2^bits rounds.
    loop {
        tape.rewind();
        let output = sampler(&mut tape);
        assert!(
            tape.words_read >= tape.words.len(),
            "the sampler is no function of its tape: it stopped early"
        );
        if tape.overrun() {
            unresolved += 1;
        } else {
            *masses.entry(output).or_insert(0) += 1_u64 << (bits - W * tape.words.len() as u32);
        }
        if !tape.advance() {
            break;
        }
    }
    let total = masses.values().sum::<u64>() + unresolved;
    assert_eq!(
        total,
        1 << bits,
        "the sampler is no function of its tape: its paths do not sum to one"
    );
    Enumeration {
        bits,
        masses,
        unresolved,
    }
}

/// What a sampler does with its coins: the exact mass of each output, and the mass of the paths not walked to their
/// end. All masses are in units of `2^-bits`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Enumeration<T> {
    bits: u32,
    masses: BTreeMap<T, u64>,
    unresolved: u64,
}

impl<T: Ord> Enumeration<T> {
    /// The depth: masses are in units of `2^-bits`.
    pub fn bits(&self) -> u32 {
        self.bits
    }

    /// The outputs that were reached, with their masses.
    pub fn masses(&self) -> &BTreeMap<T, u64> {
        &self.masses
    }

    /// The mass of one output; zero if it was not reached.
    pub fn mass(&self, output: &T) -> u64 {
        self.masses.get(output).copied().unwrap_or(0)
    }

    /// The mass of the paths that are longer than `bits`.
    pub fn unresolved(&self) -> u64 {
        self.unresolved
    }

    /// The outputs whose probability, which is known to lie in the enclosure `(lower, upper)`, contradicts the masses.
    pub fn violations(&self, enclosure: impl Fn(&T) -> (RBig, RBig)) -> Vec<Violation<'_, T>> {
        let probability =
            |mass: u64| RBig::from_parts(IBig::from(mass), UBig::ONE << self.bits as usize);
        let judge = |(output, &mass)| {
            let (lower, upper) = enclosure(output);
            let (mass_lower, mass_upper) = (probability(mass), probability(mass + self.unresolved));
            let contradicts = upper < mass_lower || lower > mass_upper;
            contradicts.then_some(Violation {
                output,
                mass_lower,
                mass_upper,
                lower,
                upper,
            })
        };
        self.masses.iter().filter_map(judge).collect()
    }
}

/// An output that comes too often or too rarely.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Violation<'a, T> {
    /// The output.
    pub output: &'a T,
    /// It comes at least with this probability,
    pub mass_lower: RBig,
    /// and at most with this one;
    pub mass_upper: RBig,
    /// while it should come at least with this one
    pub lower: RBig,
    /// and at most with this one.
    pub upper: RBig,
}

#[cfg(test)]
mod tests {
    use super::*;

    fn exactly(numerator: u64, denominator: u64) -> (RBig, RBig) {
        let p = RBig::from_parts(IBig::from(numerator), UBig::from(denominator));
        (p.clone(), p)
    }

    /// A number below three from two bits, trying again on a three.
    fn die(tape: &mut Tape<2>) -> u64 {
        loop {
            let word = tape.word();
            if word < 3 {
                return word;
            }
        }
    }

    fn geometric(tape: &mut Tape<1>) -> u64 {
        let mut failures = 0;
        while tape.word() == 0 {
            failures += 1;
        }
        failures
    }

    #[test]
    fn fair_coin_is_fair() {
        let coin = enumerate::<1, u64>(8, |tape| tape.word());
        assert_eq!((coin.bits(), coin.unresolved()), (8, 0));
        assert_eq!(coin.masses(), &BTreeMap::from([(0, 128), (1, 128)]));
        assert!(coin.violations(|_| exactly(1, 2)).is_empty());
    }

    #[test]
    fn biased_coin_is_convicted() {
        // Heads with 129/256 instead of 1/2.
        let coin = enumerate::<8, bool>(8, |tape| tape.word() < 129);
        let violations = coin.violations(|_| exactly(1, 2));
        assert_eq!(
            violations
                .iter()
                .map(|found| *found.output)
                .collect::<Vec<_>>(),
            [false, true]
        );
        assert_eq!(
            violations[1].mass_lower,
            RBig::from_parts(129.into(), 256_u64.into())
        );
    }

    #[test]
    fn die_by_rejection_is_fair_and_leaves_little_unresolved() {
        let die = enumerate::<2, u64>(24, die);
        assert_eq!((die.bits(), die.unresolved()), (24, 1));
        assert!(die.violations(|_| exactly(1, 3)).is_empty());
    }

    #[test]
    fn die_by_modulo_is_convicted() {
        let die = enumerate::<8, u64>(8, |tape| tape.word() % 3);
        assert_eq!(die.unresolved(), 0);
        assert_eq!(die.violations(|_| exactly(1, 3)).len(), 3);
    }

    #[test]
    fn geometric_has_its_masses() {
        let geometric = enumerate::<1, u64>(20, geometric);
        assert_eq!((geometric.unresolved(), geometric.masses().len()), (1, 20));
        assert!(
            geometric
                .masses()
                .iter()
                .all(|(&failures, &mass)| mass == 1 << (19 - failures))
        );
        assert!(
            geometric
                .violations(|&failures| exactly(1, 2 << failures))
                .is_empty()
        );
    }

    #[test]
    fn geometric_that_starts_at_one_is_convicted() {
        let shifted = enumerate::<1, u64>(20, |tape| geometric(tape) + 1);
        assert!(
            !shifted
                .violations(|&failures| exactly(1, 2 << failures))
                .is_empty()
        );
    }

    #[test]
    fn an_output_that_never_comes_is_missed_by_the_others() {
        // A die whose third side fell off.
        let die = enumerate::<2, u64>(24, |tape| die(tape) % 2);
        assert!(!die.violations(|_| exactly(1, 3)).is_empty());
    }

    #[test]
    fn enclosures_that_touch_are_no_violation() {
        let die = enumerate::<2, u64>(4, die);
        assert_eq!((die.mass(&0), die.unresolved()), (5, 1));
        let check = |lower: u64, upper: u64, found: usize| {
            let enclosure = (exactly(lower, 32).0, exactly(upper, 32).0);
            assert_eq!(
                die.violations(|_| enclosure.clone()).len(),
                found,
                "{lower}/32 {upper}/32"
            );
        };
        check(0, 10, 0);
        check(12, 32, 0);
        check(0, 9, 3);
        check(13, 32, 3);
    }

    #[test]
    fn sampler_without_coins_is_one_leaf() {
        let constant = enumerate::<64, u8>(10, |_| 7);
        assert_eq!(
            (constant.bits(), constant.mass(&7), constant.unresolved()),
            (0, 1, 0)
        );
    }

    #[test]
    fn words_wider_than_the_depth_stay_unresolved() {
        let wide = enumerate::<16, u64>(15, |tape| tape.word());
        assert_eq!(
            (wide.bits(), wide.masses().len(), wide.unresolved()),
            (0, 0, 1)
        );
    }

    #[test]
    fn tape_replays_its_script_and_notices_when_it_ends() {
        let mut tape = Tape::<4>::new(&[3, 0x1F]);
        assert_eq!((tape.word(), tape.word(), tape.overrun()), (3, 15, false));
        assert!(tape.word() < 16);
        assert!(tape.overrun() && tape.words_read() == 3);
    }

    #[test]
    #[should_panic(expected = "no function of its tape")]
    fn sampler_with_coins_of_its_own_is_refused() {
        let mut runs = 0;
        enumerate::<1, u64>(4, |tape| {
            runs += 1;
            (0..runs % 3).map(|_| tape.word()).sum()
        });
    }
}

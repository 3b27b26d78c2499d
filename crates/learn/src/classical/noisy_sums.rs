//! # Noisy sums
//! **Definition.** So many rounds; in each, what every example adds to a vector of integers is summed up, and independent noise of one scale is
//!   added to each coordinate: discrete Laplace noise if `δ = 0`, rounded Gaussian noise else. What is asked in a round may depend on the
//!   rounds before.
//! **Requires.** Of each model, by the proof in its file: an example adds an integer vector that is a function of itself and of the rounds
//!   before, at most `Δ₁` long in L1 and `Δ₂` in L2. An empty example adds nothing.
//! **Guarantee.** Under add/remove of one example the whole is `(ε, δ)`-DP for the budget `(ε, δ)`: with `T` rounds, noise of scale
//!   `b = T Δ₁/ε` makes it `ε`-DP, and Gaussian noise of deviation `σ` makes it `√T Δ₂/σ`-GDP, where `σ` is the least (to `2^-24` of `Δ₂`) that the
//!   accountant prices within the budget. \[DMNS06, DRS22\]
//! **Proof.** Given the rounds before, sums of neighbours differ by what one example adds. Sums are exact in 128 bits: an example adds less than `2^63`, and
//!   fewer than `2^64` fit into any memory. They are cut to 62 bits before the noise: that moves no two values further apart, so
//!   both bounds still hold. So each round is the mechanism of the event, and the rounds are the composition that the event states, whose price was
//!   asked of the accountant and compared with the budget. What follows each round sees the noisy sums and public numbers
//!   alone. ∎
//! **Error.** [`deviation`](super::Terms::deviation) of each coordinate.

use whit_accounting::{Bracket, epsilon, price};
use whit_core::{
    AddRemove, Delta, Entropy, Epsilon, Event, Mechanism, Neighbours, Probability, Ratio, Relation,
    Scale, Secret, Sensitivity, round,
};
use whit_mechanism::{DiscreteLaplace, ObjectiveNoise, Release, RoundedGaussian};

use super::budget::NoiseKind;
use super::{Budget, Terms};
use crate::data::{Dataset, Example};
use crate::error::{Error, Result};
use crate::payment::Payment;
use crate::plan::calibrate::calibrate;

/// Sums are cut to this many bits before there is noise.
const SUM_BITS: u32 = 62;
/// How often the epsilon of a pure round is lowered, by a share of `2^-40` each, until the sum of all rounds, which is rounded up, is within the budget.
const LOWERINGS: u32 = 4;

/// How far one example moves the sums of a round, where the integer `2^bits` counts as one. Vouched for by the model that states it.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Reach {
    /// `Δ₁`.
    pub(super) l1: Ratio,
    /// `Δ₂²`.
    pub(super) l2_square: Ratio,
    /// How many sums.
    pub(super) coordinates: usize,
    /// The grid.
    pub(super) bits: i32,
}

/// The noise of a whole fit, with its event.
#[derive(Clone, Debug, PartialEq)]
pub struct NoisySums {
    reach: Reach,
    rounds: u64,
    budget: Budget,
    noise: Noise,
    event: Event,
    epsilon: Bracket,
}

/// Which noise, in units of the grid.
#[derive(Clone, Debug, PartialEq)]
enum Noise {
    Laplace(Scale),
    Gaussian(Scale),
}

impl NoisySums {
    /// Calibrates and prices. Reads no data.
    pub(super) fn new(reach: Reach, rounds: u64, budget: Budget) -> Result<Self> {
        match budget.noise() {
            NoiseKind::Laplace => Self::pure(reach, rounds, budget),
            NoiseKind::Gaussian => Self::gaussian(reach, rounds, budget),
        }
    }

    fn pure(reach: Reach, rounds: u64, budget: Budget) -> Result<Self> {
        let whole = budget.epsilon().value();
        // Multiples of 2^-50 add up without rounding.
        let mut each = Epsilon::new(whole / rounds as f64)?.in_whole_steps();
        if rounds == 1 {
            each = budget.epsilon();
        }
        let distance = reach.l1_in_grid();
        for _ in 0..LOWERINGS {
            let scale = whit_accounting::calibrate::laplace_scale(&distance, each)?;
            let noise = Noise::Laplace(scale);
            let event = reach.event(&noise, rounds);
            let found = price(&event, Delta::ZERO)?.epsilon;
            if found <= budget.epsilon() {
                let (upper, lower) = (found.value(), epsilon(&event, Delta::ZERO)?.bounds.lower());
                let bounds = Bracket::new(lower.min(upper), upper);
                return Ok(Self::found(reach, rounds, budget, noise, event, bounds));
            }
            each = Epsilon::new(each.value() * (1.0 - f64::EPSILON * 4096.0))?;
        }
        let what = "Laplace scale";
        Err(whit_accounting::Error::Unverified { what }.into())
    }

    fn gaussian(reach: Reach, rounds: u64, budget: Budget) -> Result<Self> {
        let of = |multiplier: f64| Ok(reach.event(&reach.gaussian(multiplier)?, rounds));
        let priced = |multiplier: f64| {
            let event = of(multiplier)?;
            let bounds = epsilon(&event, budget.delta())?.bounds;
            Ok((event, bounds))
        };
        let target = budget.epsilon().value();
        let (multiplier, (event, bounds)) = calibrate(target, budget.delta(), of, priced)?;
        let noise = reach.gaussian(multiplier)?;
        Ok(Self::found(reach, rounds, budget, noise, event, bounds))
    }

    fn found(
        reach: Reach,
        rounds: u64,
        budget: Budget,
        noise: Noise,
        event: Event,
        epsilon: Bracket,
    ) -> Self {
        Self {
            reach,
            rounds,
            budget,
            noise,
            event,
            epsilon,
        }
    }

    /// What the whole fit does to the data.
    pub fn event(&self) -> &Event {
        &self.event
    }

    /// What was asked for, what the fit costs at the budget's delta, and the noise.
    pub(super) fn terms(&self) -> Terms {
        Terms {
            budget: self.budget,
            epsilon: self.epsilon,
            deviation: self.deviation(),
        }
    }

    /// Which noise was made: what decides by which length examples are shortened.
    pub(super) fn kind(&self) -> NoiseKind {
        match self.noise {
            Noise::Laplace(_) => NoiseKind::Laplace,
            Noise::Gaussian(_) => NoiseKind::Gaussian,
        }
    }

    /// What is added to each sum, in units of the grid.
    pub(super) fn objective_noise(&self) -> ObjectiveNoise {
        match &self.noise {
            Noise::Laplace(scale) => ObjectiveNoise::Laplace(scale.clone()),
            Noise::Gaussian(scale) => ObjectiveNoise::Gaussian(scale.clone()),
        }
    }

    /// The standard deviation of the noise of each sum, where what an example adds to a count is one. For Laplace noise `√2 b`, up to one step of the grid.
    pub(super) fn deviation(&self) -> f64 {
        let (scale, shape) = match &self.noise {
            Noise::Laplace(scale) => (scale, std::f64::consts::SQRT_2),
            Noise::Gaussian(scale) => (scale, 1.0),
        };
        shape * scale.ratio().to_f64_up() * self.one().recip()
    }

    /// That the fit is `(epsilon_upper, δ)`-DP, and nothing else.
    pub(super) fn guarantee(&self) -> Result<Event> {
        let exact = |value: f64| Ratio::from_f64(value).ok_or(Error::Unbound);
        let epsilon = exact(self.epsilon.upper())?;
        let delta = Probability::new(exact(self.budget.delta().value())?)?;
        let guarantee = match self.noise {
            Noise::Laplace(_) => Mechanism::Pure { epsilon },
            Noise::Gaussian(_) => Mechanism::Approximate { epsilon, delta },
        };
        Ok(Event::new(Neighbours::AddRemove, guarantee))
    }

    /// The one round of a fit that has one. Uses the payment up, and asks for the sums when that is done.
    pub(super) fn release(
        &self,
        payment: Payment,
        sums: impl FnOnce() -> Secret<Vec<i128>>,
        entropy: &mut impl Entropy,
    ) -> Result<Release<Vec<f64>>> {
        let mut rounds = self.begin(payment)?;
        let noisy = rounds.release(sums(), entropy)?;
        rounds.finish(noisy)
    }

    /// All rounds, once. Uses the payment up.
    pub(super) fn begin(&self, payment: Payment) -> Result<Rounds<'_>> {
        payment.lay_down(&self.event.fingerprint())?;
        let mechanism = match &self.noise {
            Noise::Laplace(scale) => {
                let distance = Sensitivity::new(self.reach.l1_in_grid());
                Additive::Laplace(DiscreteLaplace::new(scale.clone(), distance))
            }
            Noise::Gaussian(scale) => {
                let distance = Sensitivity::from_square(self.reach.l2_square_in_grid());
                Additive::Gaussian(RoundedGaussian::new(scale.clone(), distance))
            }
        };
        Ok(Rounds {
            of: self,
            mechanism,
            left: self.rounds,
        })
    }

    /// What counts as one, in units of the grid.
    pub(super) fn one(&self) -> f64 {
        (self.reach.bits as f64).exp2()
    }
}

/// Broken twins of a fit, with less noise than it needs.
#[cfg(test)]
impl NoisySums {
    /// As if the distances were these.
    pub(super) fn believing(&self, l1: Ratio, l2_square: Ratio) -> Self {
        let reach = Reach {
            l1,
            l2_square,
            ..self.reach.clone()
        };
        Self::new(reach, self.rounds, self.budget).expect("as far in reach")
    }

    /// As if the square of the L2 distance, and the L1 distance, were so many times what they are.
    pub(super) fn with_square_of(&self, factor: Ratio) -> Self {
        self.believing(&self.reach.l1 * &factor, &self.reach.l2_square * &factor)
    }

    /// So many fits at once, each for the price of one.
    pub(super) fn copies(&self, count: usize) -> Self {
        let mut all = self.clone();
        all.reach.coordinates *= count;
        all.event = all.reach.event(&all.noise, all.rounds);
        all
    }

    /// By a tenth.
    pub(super) fn less(&self) -> Self {
        let of = |part, whole| Ratio::new(part, whole).expect("not zero");
        self.believing(
            &self.reach.l1 * &of(9, 10),
            &self.reach.l2_square * &of(81, 100),
        )
    }
}

impl Reach {
    fn l1_in_grid(&self) -> Ratio {
        &self.l1 * &Ratio::power_of_two(self.bits)
    }

    fn l2_square_in_grid(&self) -> Ratio {
        &self.l2_square * &Ratio::power_of_two(2 * self.bits)
    }

    /// Gaussian noise of so many distances, or next to nothing more: the distance is rounded up, and the scale is a float.
    fn gaussian(&self, multiplier: f64) -> Result<Noise> {
        let distance = round::sqrt_up(self.l2_square_in_grid().to_f64_up());
        let scale = Ratio::from_f64(round::mul_up(multiplier, distance)).ok_or(Error::Unbound)?;
        Ok(Noise::Gaussian(Scale::new(scale)?))
    }

    /// So many rounds of this noise.
    fn event(&self, noise: &Noise, rounds: u64) -> Event {
        let each = match noise {
            Noise::Laplace(scale) => Mechanism::DiscreteLaplace {
                scale: scale.clone(),
                sensitivity_l1: self.l1_in_grid(),
                coordinates: self.coordinates as u64,
            },
            Noise::Gaussian(scale) => Mechanism::Gaussian {
                scale: scale.clone(),
                sensitivity_l2_square: self.l2_square_in_grid(),
            },
        };
        let all = match rounds {
            1 => each,
            _ => Mechanism::Composition(vec![each; rounds as usize]),
        };
        Event::new(AddRemove::NEIGHBOURS, all)
    }
}

/// One of the two mechanisms.
enum Additive {
    Laplace(DiscreteLaplace<AddRemove>),
    Gaussian(RoundedGaussian<AddRemove>),
}

/// The rounds of one fit that are left.
pub(super) struct Rounds<'a> {
    of: &'a NoisySums,
    mechanism: Additive,
    left: u64,
}

impl Rounds<'_> {
    /// Spends one round. The sums come back with their noise, in ones.
    pub(super) fn release(
        &mut self,
        sums: Secret<Vec<i128>>,
        entropy: &mut impl Entropy,
    ) -> Result<Release<Vec<f64>>> {
        let taken = Error::StepsTaken {
            steps: self.of.rounds,
        };
        self.left = self.left.checked_sub(1).ok_or(taken)?;
        let end = 1_i128 << SUM_BITS;
        let coordinates = self.of.reach.coordinates;
        let sums = sums.map(|mut sums| -> Vec<i64> {
            // As many as were paid for, whoever summed: the length of an event's vector is public.
            sums.resize(coordinates, 0);
            sums.into_iter()
                .map(|sum| sum.clamp(-end, end) as i64)
                .collect()
        });
        let noisy = match &self.mechanism {
            Additive::Laplace(mechanism) => mechanism.release_vector(sums, entropy)?,
            Additive::Gaussian(mechanism) => mechanism.release(sums, entropy)?,
        };
        let one = self.of.one();
        Ok(noisy.map(|noisy| noisy.into_iter().map(|sum| sum as f64 / one).collect()))
    }

    /// What came of it, if all rounds were taken and what was done is what was paid for.
    pub(super) fn finish<T>(self, release: Release<T>) -> Result<Release<T>> {
        match self.left == 0 && release.event() == &self.of.event {
            true => Ok(release),
            false => Err(Error::Unbound),
        }
    }
}

/// What all examples add, in secret. `add` must add at most what the reach says, as a function of the example and public numbers.
pub(super) fn sum(
    data: &Secret<Dataset>,
    coordinates: usize,
    mut add: impl FnMut(Example<'_>, &mut [i128]),
) -> Secret<Vec<i128>> {
    data.as_ref().map(|data| {
        let mut sums = vec![0; coordinates];
        for example in (0..data.rows()).filter_map(|row| data.example(row)) {
            add(example, &mut sums);
        }
        sums
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::classical::doubt::{Bare, budget, seeded};
    use whit_core::Fault;
    use whit_testkit::FailingEntropy;

    fn reach() -> Reach {
        Reach {
            l1: Ratio::from(3_u64),
            l2_square: Ratio::from(2_u64),
            coordinates: 3,
            bits: 18,
        }
    }

    fn noise(rounds: u64, (epsilon, delta): (f64, f64)) -> NoisySums {
        NoisySums::new(reach(), rounds, budget(epsilon, delta)).expect("in reach")
    }

    /// For ε = 1 and δ = 1e-6 the exact analysis of [BW18, Thm 8] needs σ = 4.22467… (mpmath).
    #[test]
    fn closed_form() {
        for rounds in [1, 2, 7, 100] {
            let gaussian = noise(rounds, (1.0, 1e-6));
            let sigma = gaussian.deviation() / (2.0 * rounds as f64).sqrt();
            assert!((4.224_67..4.224_69).contains(&sigma), "{rounds}: {sigma}");
            let price = price(gaussian.event(), Delta::new(1e-6).expect("a delta"));
            let price = price.expect("priced").epsilon.value();
            assert!(price <= 1.0 && price > 1.0 - 1e-5, "{rounds}: {price}");
            for epsilon in [0.1, 1.0, 3.3, 40.0] {
                let laplace = noise(rounds, (epsilon, 0.0));
                let expected = std::f64::consts::SQRT_2 * 3.0 * rounds as f64 / epsilon;
                assert!((laplace.deviation() / expected - 1.0).abs() < 1e-9);
                let price = price_of(laplace.event());
                assert!(
                    price <= epsilon && price > epsilon * (1.0 - 1e-9),
                    "{price}"
                );
            }
        }
    }

    fn price_of(event: &Event) -> f64 {
        price(event, Delta::ZERO).expect("pure").epsilon.value()
    }

    #[test]
    fn a_guarantee_is_never_below_what_the_fit_costs() {
        for (epsilon, delta) in [(1.0, 1e-6), (0.3, 0.0)] {
            let noise = noise(3, (epsilon, delta));
            let guarantee = noise.guarantee().expect("finite");
            let delta = Delta::new(delta).expect("a delta");
            let [covers, costs] =
                [&guarantee, noise.event()].map(|event| price(event, delta).expect("priced"));
            assert!(covers.epsilon >= costs.epsilon && covers.delta >= costs.delta);
            assert!(covers.epsilon.value() <= epsilon);
        }
    }

    #[test]
    fn a_payment_is_for_all_rounds_of_one_fit() {
        use crate::payment::Uncharged;
        let (two, other) = (noise(2, (1.0, 1e-6)), noise(3, (1.0, 1e-6)));
        let refused = two.begin(Payment::uncharged(&Bare(&other), Uncharged));
        assert_eq!(refused.err().map(|error| error.code()), Some("other_plan"));
        let begin = || {
            two.begin(Payment::uncharged(&Bare(&two), Uncharged))
                .expect("paid")
        };
        let mut entropy = seeded(701);
        let mut rounds = begin();
        let zero = || Secret::new(vec![0; 3]);
        let first = rounds.release(zero(), &mut entropy).expect("the first");
        let second = rounds.release(zero(), &mut entropy).expect("the second");
        let third = rounds.release(zero(), &mut entropy).err();
        assert_eq!(third.map(|error| error.code()), Some("steps_taken"));
        let both = first.clone().and(second).expect("one relation");
        assert!(rounds.finish(both).is_ok());
        assert!(begin().finish(first).is_err(), "a round is missing");
        assert!(begin().release(zero(), &mut FailingEntropy).is_err());
    }

    /// Nothing is summed for a payment that is none: data are read after it.
    #[test]
    fn sums_are_asked_for_when_all_is_paid() {
        use crate::payment::Uncharged;
        let (one, other) = (noise(1, (1.0, 0.0)), noise(2, (1.0, 0.0)));
        let asked = std::cell::Cell::new(false);
        let sums = || {
            asked.set(true);
            Secret::new(vec![0; 3])
        };
        let stolen = Payment::uncharged(&Bare(&other), Uncharged);
        assert!(one.release(stolen, sums, &mut seeded(703)).is_err() && !asked.get());
        let paid = Payment::uncharged(&Bare(&one), Uncharged);
        assert!(one.release(paid, sums, &mut seeded(703)).is_ok() && asked.get());
    }

    /// Cutting sums to their ends brings no two of them further apart, and vectors are as long as was paid for.
    #[test]
    fn sums_beyond_all_ends_are_cut() {
        use crate::payment::Uncharged;
        let one = noise(1, (1.0, 0.0));
        let mut rounds = one
            .begin(Payment::uncharged(&Bare(&one), Uncharged))
            .expect("paid");
        let sums = Secret::new(vec![i128::MAX, i128::MIN, 0, 7, 7]);
        let noisy = rounds
            .release(sums, &mut seeded(702))
            .expect("entropy")
            .into_value();
        let end = f64::from(SUM_BITS - 18).exp2();
        assert_eq!(noisy.len(), 3);
        assert!((noisy[0] / end - 1.0).abs() < 1e-6 && (noisy[1] / end + 1.0).abs() < 1e-6);
    }
}

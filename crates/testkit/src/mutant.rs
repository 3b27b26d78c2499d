//! Planted privacy bugs: small changes to the source that break a guarantee. The test suite must convict every one of them.
//!
//! `cargo run --release -p whit-testkit --example mutants` plants each in a copy of the workspace and runs the tests that should notice.

/// One planted bug.
#[derive(Clone, Copy, Debug)]
pub struct Mutant {
    /// What is wrong, in a few words.
    pub name: &'static str,
    /// The file, from the root of the workspace.
    pub file: &'static str,
    /// Stands in the file exactly once …
    pub original: &'static str,
    /// … and is replaced by this.
    pub planted: &'static str,
    /// The package whose tests must notice.
    pub package: &'static str,
    /// Only tests whose names contain this are run.
    pub tests: &'static str,
}

const MECHANISM: &str = "whit-mechanism";
const ACCOUNTING: &str = "whit-accounting";
const WHIT: &str = "whit";

/// All of them.
pub const MUTANTS: &[Mutant] = &[
    Mutant {
        name: "zero is drawn with the wrong probability",
        file: "crates/mechanism/src/sample/discrete_laplace.rs",
        original: "Bernoulli::tanh_half(dashu_ratio::RBig::ONE / rate)",
        planted: "Bernoulli::logistic(dashu_ratio::RBig::ONE / rate)",
        package: MECHANISM,
        tests: "discrete_laplace",
    },
    Mutant {
        name: "digits of a geometric with the wrong odds",
        file: "crates/mechanism/src/sample/geometric.rs",
        original: "low.push(Bernoulli::logistic(",
        planted: "low.push(Bernoulli::exp_neg(",
        package: MECHANISM,
        tests: "geometric",
    },
    Mutant {
        name: "Gaussian rejection forgets its centre",
        file: "crates/mechanism/src/sample/discrete_gaussian.rs",
        original: "RBig::from(UBig::from(y)) - &self.centre;",
        planted: "RBig::from(UBig::from(y));",
        package: MECHANISM,
        tests: "discrete_gaussian",
    },
    Mutant {
        name: "ties in a comparison go the wrong way",
        file: "crates/mechanism/src/sample/threshold.rs",
        original: "return drawn < digits;",
        planted: "return drawn > digits;",
        package: MECHANISM,
        tests: "threshold",
    },
    Mutant {
        name: "uniform by remainder instead of rejection",
        file: "crates/mechanism/src/sample/uniform.rs",
        original: "if value < bound {\n            return value;\n        }",
        planted: "if value < u64::MAX {\n            return value % bound;\n        }",
        package: MECHANISM,
        tests: "uniform",
    },
    Mutant {
        name: "constant-time table without its first row",
        file: "crates/mechanism/src/sample/constant_time.rs",
        original: "self.tails.iter().map(|&tail| less(uniform, tail)).sum();",
        planted: "self.tails.iter().skip(1).map(|&tail| less(uniform, tail)).sum();",
        package: MECHANISM,
        tests: "constant_time",
    },
    Mutant {
        name: "constant-time Laplace one step short",
        file: "crates/mechanism/src/sample/constant_time.rs",
        original: "signed((magnitude + 1) * nonzero, negative)",
        planted: "signed(magnitude * nonzero, negative)",
        package: MECHANISM,
        tests: "constant_time",
    },
    Mutant {
        name: "one draw shared by all coordinates",
        file: "crates/mechanism/src/additive.rs",
        original: "let mut values = values.expose();",
        planted: "let mut values = values.expose();\n    let shared = noise.draw(&mut bits);\n    struct Same(i128);\n    impl Draw for Same {\n        fn draw<B: Bits>(&self, _: &mut B) -> i128 {\n            self.0\n        }\n    }\n    let noise = &Same(shared);",
        package: MECHANISM,
        tests: "falsifier",
    },
    Mutant {
        name: "the last coordinate gets no noise",
        file: "crates/mechanism/src/additive.rs",
        original: "for value in &mut values {",
        planted: "let all = values.len();\n    for value in values.iter_mut().take(if all > 1 { all - 1 } else { 1 }) {",
        package: MECHANISM,
        tests: "distribution",
    },
    Mutant {
        name: "noise a tenth too small",
        file: "crates/mechanism/src/discrete_laplace.rs",
        original: "let sampler = Sampler::Exact(sample::DiscreteLaplace::new(&scale));",
        planted: "let less = Scale::new(&Ratio::new(9, 10).expect(\"ten\") * scale.ratio()).expect(\"in range\");\n        let sampler = Sampler::Exact(sample::DiscreteLaplace::new(&less));",
        package: MECHANISM,
        tests: "falsifier",
    },
    Mutant {
        name: "Gaussian noise a tenth too small",
        file: "crates/mechanism/src/discrete_gaussian.rs",
        original: "let sampler = Sampler::Exact(Box::new(sample::DiscreteGaussian::new(&scale)));",
        planted: "let less = Scale::new(&whit_core::Ratio::new(9, 10).expect(\"ten\") * scale.ratio()).expect(\"in range\");\n        let sampler = Sampler::Exact(Box::new(sample::DiscreteGaussian::new(&less)));",
        package: MECHANISM,
        tests: "discrete_gaussian",
    },
    Mutant {
        name: "a constant key is accepted",
        file: "crates/mechanism/src/entropy.rs",
        original: "if state.key == [0; 32] {",
        planted: "if state.key == [1; 32] {",
        package: MECHANISM,
        tests: "entropy",
    },
    Mutant {
        name: "the block counter wraps under the same nonce",
        file: "crates/mechanism/src/entropy.rs",
        original: "self.nonce += 1;",
        planted: "self.nonce += 0;",
        package: MECHANISM,
        tests: "entropy",
    },
    Mutant {
        name: "randomized response may keep the truth twice",
        file: "crates/mechanism/src/randomized_response.rs",
        original: "other + u64::from(other >= category)",
        planted: "other + u64::from(other > category)",
        package: MECHANISM,
        tests: "randomized_response",
    },
    Mutant {
        name: "rounding towards zero",
        file: "crates/mechanism/src/grid.rs",
        original: "(mantissa + (1 << (down - 1))) >> down",
        planted: "mantissa / (1 << down)",
        package: MECHANISM,
        tests: "grid",
    },
    Mutant {
        name: "what is no number is far away",
        file: "crates/mechanism/src/grid.rs",
        original: "if x.is_nan() {\n            return 0;",
        planted: "if x.is_nan() {\n            return STEPS_MAX;",
        package: MECHANISM,
        tests: "special_values",
    },
    Mutant {
        name: "rounding of vectors is not paid for",
        file: "crates/mechanism/src/laplace.rs",
        original: "in_steps.ceil() + UBig::from(coordinates - 1)",
        planted: "in_steps.ceil()",
        package: MECHANISM,
        tests: "laplace",
    },
    Mutant {
        name: "a sensitivity is rounded down",
        file: "crates/mechanism/src/gaussian.rs",
        original: "RBig::from(ceil_sqrt(&square.ceil()))",
        planted: "RBig::from(square.floor().sqrt())",
        package: MECHANISM,
        tests: "gaussian",
    },
    Mutant {
        name: "the lower bound is used twice",
        file: "crates/mechanism/src/fixed_point.rs",
        original: "self.upper.abs_diff(self.lower)",
        planted: "self.lower.abs_diff(self.lower)",
        package: MECHANISM,
        tests: "sensitivity",
    },
    Mutant {
        name: "values are not clamped",
        file: "crates/mechanism/src/fixed_point.rs",
        original: "self.grid.round(value).clamp(lower, upper) as i64",
        planted: "self.grid.round(value).clamp(lower * 2, upper * 2) as i64",
        package: MECHANISM,
        tests: "sensitivity",
    },
    Mutant {
        name: "an absent cell counts as nothing under replace-one",
        file: "crates/mechanism/src/bounded_sum.rs",
        original: "Contribution::Row => self.bounds.nearest_to_zero(),",
        planted: "Contribution::Row => 0,",
        package: MECHANISM,
        tests: "bounded_sum",
    },
    Mutant {
        name: "add/remove sensitivity under replace-one",
        file: "crates/mechanism/src/bounded_sum.rs",
        original: "R::pick(self.bounds.reach(), replaced)",
        planted: "R::pick(self.bounds.reach(), self.bounds.reach() / 2)",
        package: MECHANISM,
        tests: "bounded_sum",
    },
    Mutant {
        name: "the mean's sum moves twice as far",
        file: "crates/mechanism/src/bounded_mean.rs",
        original: "R::pick(width, 2 * width)",
        planted: "R::pick(width / 2, width)",
        package: MECHANISM,
        tests: "bounded_mean",
    },
    Mutant {
        name: "the count of a mean taken as public",
        file: "crates/mechanism/src/bounded_mean.rs",
        original: "R::NEIGHBOURS == Neighbours::ReplaceOne && self.contribution == Contribution::Row",
        planted: "R::NEIGHBOURS == Neighbours::AddRemove && self.contribution == Contribution::Row",
        package: MECHANISM,
        tests: "bounded_mean",
    },
    Mutant {
        name: "a replaced row moves one bin",
        file: "crates/mechanism/src/histogram.rs",
        original: "Ratio::from(R::pick(1_u64, 2))",
        planted: "Ratio::from(R::pick(1_u64, 1))",
        package: MECHANISM,
        tests: "histogram",
    },
    Mutant {
        name: "a count forgets its rows per unit",
        file: "crates/mechanism/src/count.rs",
        original: "Ratio::from(u64::from(self.contribution.rows_max()))",
        planted: "Ratio::from(u64::from(self.contribution.rows_max().min(1)))",
        package: MECHANISM,
        tests: "count::",
    },
    Mutant {
        name: "one row per unit too many",
        file: "crates/mechanism/src/contribution.rs",
        original: "let keep = *used < rows_max;",
        planted: "let keep = *used <= rows_max;",
        package: MECHANISM,
        tests: "contribution",
    },
    Mutant {
        name: "selection charged as if twice as private",
        file: "crates/mechanism/src/score.rs",
        original: "sensitivity.bound() * &Ratio::from(2_u64)",
        planted: "sensitivity.bound() * &Ratio::from(1_u64)",
        package: MECHANISM,
        tests: "exponential",
    },
    Mutant {
        name: "permute-and-flip claims a bounded range",
        file: "crates/mechanism/src/permute_and_flip.rs",
        original: "let mechanism = Mechanism::Pure {",
        planted: "let mechanism = Mechanism::BoundedRange {",
        package: MECHANISM,
        tests: "permute_and_flip",
    },
    Mutant {
        name: "the threshold of a sparse vector has no noise",
        file: "crates/mechanism/src/above_threshold.rs",
        original: "noisy_threshold: noisy,",
        planted: "noisy_threshold: i128::from(threshold),",
        package: MECHANISM,
        tests: "sparse_vector",
    },
    Mutant {
        name: "a key of one unit too many is shown",
        file: "crates/mechanism/src/partition_threshold.rs",
        original: "if noisy > self.threshold {",
        planted: "if noisy >= self.threshold {",
        package: MECHANISM,
        tests: "partition_threshold",
    },
    Mutant {
        name: "the selection curve rises twice as fast",
        file: "crates/mechanism/src/sample/selection_curve.rs",
        original: "let rising = ((&r * shown) >> tail::BITS) + &delta;",
        planted: "let rising = ((&r * shown) >> tail::BITS) + &delta + &delta;",
        package: MECHANISM,
        tests: "selection",
    },
    Mutant {
        name: "a quantile's sensitivity is the smaller side",
        file: "crates/mechanism/src/quantile.rs",
        original: "share.clone().max(other)",
        planted: "share.clone().min(other)",
        package: MECHANISM,
        tests: "quantile",
    },
    Mutant {
        name: "one distinct value per unit too many",
        file: "crates/mechanism/src/count_distinct.rs",
        original: "kept.len() < values_max as usize",
        planted: "kept.len() <= values_max as usize",
        package: MECHANISM,
        tests: "count_distinct",
    },
    Mutant {
        name: "a level of the tree is forgotten",
        file: "crates/mechanism/src/continual_count.rs",
        original: "self.horizon.ilog2() + 1",
        planted: "self.horizon.ilog2()",
        package: MECHANISM,
        tests: "continual_count",
    },
    Mutant {
        name: "marginals do not split their budget",
        file: "crates/mechanism/src/marginals.rs",
        original: "Ratio::from(R::pick(1_u64, 2) * self.sets.len() as u64)",
        planted: "Ratio::from(R::pick(1_u64, 2))",
        package: MECHANISM,
        tests: "marginals",
    },
    Mutant {
        name: "empty bins pass their threshold",
        file: "crates/mechanism/src/log_bins.rs",
        original: "i128::from(count) > threshold",
        planted: "i128::from(count) >= threshold",
        package: MECHANISM,
        tests: "bounds",
    },
    Mutant {
        name: "bounds under replace-one move one bin",
        file: "crates/mechanism/src/approximate_bounds.rs",
        original: "let sides = Ratio::from(R::pick(1_u64, 2));",
        planted: "let sides = Ratio::from(R::pick(1_u64, 1));",
        package: MECHANISM,
        tests: "approximate_bounds",
    },
    Mutant {
        name: "composition takes the largest epsilon",
        file: "crates/accounting/src/pure.rs",
        original: "bounded(round::add_up(sum.value(), epsilon(part)?.value()))",
        planted: "bounded(sum.value().max(epsilon(part)?.value()))",
        package: ACCOUNTING,
        tests: "",
    },
    Mutant {
        name: "closeness is paid for once",
        file: "crates/accounting/src/close.rs",
        original: "round::mul_up(one_plus_exp(epsilon), distance)",
        planted: "round::mul_up(1.0, distance)",
        package: ACCOUNTING,
        tests: "",
    },
    Mutant {
        name: "parts do not split their budget",
        file: "crates/whit/src/stats/target.rs",
        original: "(self.epsilon_in(parts)?, Ratio::from(u64::from(parts)))",
        planted: "(self.epsilon_in(parts)?, Ratio::from(u64::from(parts.min(1))))",
        package: WHIT,
        tests: "",
    },
    Mutant {
        name: "rows of nobody are kept",
        file: "crates/whit/src/stats/input.rs",
        original: "if row.cell(unit).is_empty() => continue,",
        planted: "if row.cell(unit).len() == usize::MAX => continue,",
        package: WHIT,
        tests: "",
    },
    Mutant {
        name: "silence shows in a file of one column",
        file: "crates/whit/src/stats/input.rs",
        original: "rows.columns() == 1",
        planted: "rows.columns() == 0",
        package: WHIT,
        tests: "",
    },
];

#[cfg(test)]
mod tests {
    use super::*;

    /// A mutant whose original is gone convicts nothing. Cheap enough to look every time.
    #[test]
    fn every_original_stands_in_its_file_once() {
        let root = concat!(env!("CARGO_MANIFEST_DIR"), "/../..");
        for mutant in MUTANTS {
            #[expect(clippy::disallowed_methods, reason = "reads the source, not data")]
            let source = std::fs::read_to_string(format!("{root}/{}", mutant.file))
                .expect("a file of the workspace");
            assert_eq!(
                source.matches(mutant.original).count(),
                1,
                "{}: {}",
                mutant.file,
                mutant.name
            );
            assert_ne!(mutant.original, mutant.planted);
        }
        assert!(MUTANTS.len() >= 40, "{} mutants", MUTANTS.len());
    }
}

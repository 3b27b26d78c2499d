//! Planted bugs of the instruments that doubt: whoever judges with one of these convicts the innocent, or acquits.

use super::Mutant;

const AUDIT: &str = "whit-audit";
const TRIAL: &str = "whit-trial";

/// Those of audits.
pub const AUDITS: &[Mutant] = &[
    Mutant {
        name: "audit: a split holds everything",
        file: "crates/audit/src/world.rs",
        original: "let (one, other) = (self.one.len() / 2, self.other.len() / 2);",
        planted: "let (one, other) = (0, 0);",
        package: AUDIT,
        tests: "world",
    },
    Mutant {
        name: "audit: both parts of what is shown are the same",
        file: "crates/audit/src/world.rs",
        original: "(part(0), part(1))",
        planted: "(part(0), part(0))",
        package: AUDIT,
        tests: "attack",
    },
    Mutant {
        name: "audit: many splits at the level of one",
        file: "crates/audit/src/world.rs",
        original: "let half = alpha.split(2)?;",
        planted: "let half = alpha;",
        package: AUDIT,
        tests: "world",
    },
    Mutant {
        name: "audit: the largest of many splits in place of the median",
        file: "crates/audit/src/world.rs",
        original: "Ok(bounds[splits.div_ceil(2) - 1])",
        planted: "Ok(bounds[0])",
        package: AUDIT,
        tests: "world",
    },
    Mutant {
        name: "audit: two bounds at the level of one",
        file: "crates/audit/src/bound.rs",
        original: "alpha.split(2 * self.tallies().len())",
        planted: "alpha.split(self.tallies().len())",
        package: AUDIT,
        tests: "bound",
    },
    Mutant {
        name: "audit: binomial bounds at twice their level",
        file: "crates/audit/src/interval.rs",
        original: "tail * (1.0 + TAIL_ERROR) <= alpha.value()",
        planted: "tail * (1.0 + TAIL_ERROR) <= 2.0 * alpha.value()",
        package: AUDIT,
        tests: "interval",
    },
    Mutant {
        name: "audit: the second look is the first again",
        file: "crates/audit/src/two_stages.rs",
        original: "alarmed.then(|| look(1, second_level))",
        planted: "alarmed.then(|| look(0, second_level))",
        package: AUDIT,
        tests: "two_stages",
    },
    Mutant {
        name: "audit: the end of what is printed is cut off",
        file: "crates/audit/src/outcome.rs",
        original: "Printed::Whole(text.into())",
        planted: "Printed::Whole(text.trim_ascii_end().into())",
        package: AUDIT,
        tests: "outcome",
    },
    Mutant {
        name: "audit: numbers are compared as numbers alone",
        file: "crates/audit/src/program.rs",
        original: "fitted.cells(\"what was printed\", target, Outcome::bytes),",
        planted: "",
        package: AUDIT,
        tests: "program",
    },
    Mutant {
        name: "audit: how noise is written is not looked at",
        file: "crates/audit/src/program.rs",
        original: "fitted.cells(\"the form of what was printed\", target, Outcome::form),",
        planted: "",
        package: AUDIT,
        tests: "program",
    },
    Mutant {
        name: "audit: nobody asks whether the held half can be compared",
        file: "crates/audit/src/program.rs",
        original: "[of(self.one()), of(self.other()), one, other]",
        planted: "[of(self.one()), of(self.other()), 0.0 * one, 0.0 * other]",
        package: AUDIT,
        tests: "program",
    },
    Mutant {
        name: "audit: power forgets delta",
        file: "crates/audit/src/power.rs",
        original: "let excess = likely - claim.delta.value() - allowed * unlikely - wide * (one + other);",
        planted: "let excess = likely - allowed * unlikely - wide * (one + other);",
        package: AUDIT,
        tests: "power",
    },
    Mutant {
        name: "audit: batches that repeat each other are fresh",
        file: "crates/audit/src/batch.rs",
        original: "if often < 2 || outcomes.is_empty() {",
        planted: "if often < 3 || outcomes.is_empty() {",
        package: AUDIT,
        tests: "batch",
    },
    Mutant {
        name: "audit: a quick trial takes too few samples of statistics",
        file: "crates/trial/src/case.rs",
        original: "(asked / every).max(least)",
        planted: "(asked / every).max(least.min(asked))",
        package: TRIAL,
        tests: "quick",
    },
];

use whit_core::{AddRemove, L1, Ratio, ReplaceOne, Sensitivity};

fn main() {
    let added = Sensitivity::<L1, AddRemove>::new(Ratio::one());
    let replaced = Sensitivity::<L1, ReplaceOne>::new(Ratio::one());
    let _ = added + replaced;
}

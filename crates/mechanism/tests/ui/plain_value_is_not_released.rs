use whit_core::{AddRemove, L1, Ratio, Scale, Sensitivity};
use whit_mechanism::{DiscreteLaplace, OsEntropy};

fn main() {
    let l1 = Sensitivity::<L1, AddRemove>::new(Ratio::one());
    let mechanism = DiscreteLaplace::new(Scale::new(Ratio::one()).unwrap(), l1);
    let _ = mechanism.release(42_i64, &mut OsEntropy::new());
}

use whit_core::{AddRemove, L1, L2, Ratio, ReplaceOne, Scale, Sensitivity};
use whit_mechanism::{Additive, Noise};

fn main() {
    let noise = Noise::Laplace(Scale::new(Ratio::one()).unwrap());
    let l1 = Sensitivity::<L1, AddRemove>::new(Ratio::one());
    let l2 = Sensitivity::<L2, ReplaceOne>::new(Ratio::one());
    let _ = Additive::new(&noise, l1, l2);
}

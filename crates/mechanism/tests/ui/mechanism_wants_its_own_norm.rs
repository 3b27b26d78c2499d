use whit_core::{AddRemove, L2, Ratio, Scale, Sensitivity};
use whit_mechanism::DiscreteLaplace;

fn main() {
    let scale = Scale::new(Ratio::one()).unwrap();
    let l2 = Sensitivity::<L2, AddRemove>::new(Ratio::one());
    let _ = DiscreteLaplace::new(scale, l2);
}

use whit_core::{AddRemove, L1, L2, Ratio, Sensitivity};

fn wants_l2(_: Sensitivity<L2, AddRemove>) {}

fn main() {
    let l1 = Sensitivity::<L1, AddRemove>::new(Ratio::one());
    let l2 = Sensitivity::<L2, AddRemove>::new(Ratio::one());
    wants_l2(l1.clone());
    let _ = l1 + l2;
}

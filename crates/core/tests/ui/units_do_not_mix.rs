use whit_core::{Delta, Epsilon};

fn main() {
    let _ = Epsilon::ZERO + Delta::ZERO;
    let _: Epsilon = Delta::ZERO;
}

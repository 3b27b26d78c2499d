use whit_core::Entropy;
use whit_mechanism::OsEntropy;

fn main() {
    let bits = OsEntropy::new().open().unwrap();
    let _ = bits.clone();
}

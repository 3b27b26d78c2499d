use whit_core::Secret;

fn main() {
    let leak = Secret::new(42) == Secret::new(42);
    let order = Secret::new(1) < Secret::new(2);
    let _ = (leak, order);
}

use whit_core::Secret;

fn main() {
    println!("{}", Secret::new(42));
    println!("{:?}", Secret::new(42));
}

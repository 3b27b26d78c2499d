use whit_core::Secret;

fn main() {
    let _ = serde_json::to_string(&Secret::new(42));
}

use whit_core::{Event, Secret};
use whit_mechanism::Release;

fn forge(secret: Secret<i64>, event: Event) {
    let _: Release<i64> = secret.into();
    let _ = Release::new(1, event);
}

fn main() {}

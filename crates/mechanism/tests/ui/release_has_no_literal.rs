use whit_core::Event;
use whit_mechanism::Release;

fn forge(event: Event) -> Release<i64> {
    Release { value: 1, event }
}

fn main() {}

//! Misuse that must not compile. Each file under `ui/` is one attempt, with the compiler's answer beside it.

#[test]
fn misuse_does_not_compile() {
    trybuild::TestCases::new().compile_fail("tests/ui/*.rs");
}

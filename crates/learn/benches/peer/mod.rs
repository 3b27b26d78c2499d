//! A peer in Python that waits for its turn: told to go on, it works for a while and prints how fast it was.

use std::io::{BufRead, BufReader, Write};
use std::process::{Child, Command, Stdio};

/// A process that is waiting.
pub(crate) struct Peer(Child);

impl Peer {
    /// Starts a script of this folder, on one thread. `None` if the peers are not installed.
    pub(crate) fn start(script: &str, arguments: &[&str]) -> Option<Self> {
        let python = std::env::var_os("WHIT_PEER_PYTHON")?;
        let child = Command::new(python)
            .arg(format!("{}/benches/{script}", env!("CARGO_MANIFEST_DIR")))
            .args(arguments)
            .env("OMP_NUM_THREADS", "1")
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn();
        Some(Self(child.expect("the peer's Python starts")))
    }

    /// What it prints after a round: examples per second of CPU time.
    pub(crate) fn speed(&mut self) -> f64 {
        let mut line = String::new();
        let (stdin, stdout) = (self.0.stdin.as_mut(), self.0.stdout.as_mut());
        writeln!(stdin.expect("piped"), "go").expect("the peer listens");
        BufReader::new(stdout.expect("piped"))
            .read_line(&mut line)
            .expect("the peer answers");
        line.trim().parse().expect("a number")
    }
}

impl Drop for Peer {
    fn drop(&mut self) {
        // The end of its input is the end of its loop.
        drop(self.0.stdin.take());
        let _ = self.0.wait();
    }
}

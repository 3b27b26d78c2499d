use std::time::Instant;
use whit_core::*;
use whit_mechanism::sample::*;
use whit_mechanism::OsEntropy;
fn main() {
    let n = 1_000_000;
    for b in [(1u128,1u128),(10,1),(1000,7),(1_000_000,1),(1<<40,1)] {
        let s = Scale::new(Ratio::new(b.0,b.1).unwrap()).unwrap();
        let t=Instant::now(); let l = DiscreteLaplace::new(&s); let setup=t.elapsed();
        let mut bits = OsEntropy::new().open().unwrap();
        let t = Instant::now(); let mut acc=0i128; for _ in 0..n { acc = acc.wrapping_add(l.sample(&mut bits)); }
        println!("laplace {:?} setup {:?} {:.1} ns {}", b, setup, t.elapsed().as_nanos() as f64/n as f64, acc);
        let t=Instant::now(); let g = DiscreteGaussian::new(&s); let setup=t.elapsed();
        let t = Instant::now(); let mut acc=0i128; for _ in 0..n { acc = acc.wrapping_add(g.sample(&mut bits)); }
        println!("gauss {:?} setup {:?} {:.1} ns {}", b, setup, t.elapsed().as_nanos() as f64/n as f64, acc);
        let t=Instant::now(); let l = ConstantTimeLaplace::new(&s); let setup=t.elapsed();
        let t = Instant::now(); let mut acc=0i128; for _ in 0..n { acc = acc.wrapping_add(l.sample(&mut bits)); }
        println!("ct laplace {:?} setup {:?} {:.1} ns {}", b, setup, t.elapsed().as_nanos() as f64/n as f64, acc);
        let t=Instant::now(); if let Some(g) = ConstantTimeGaussian::new(&s) { let setup=t.elapsed();
        let t = Instant::now(); let mut acc=0i128; for _ in 0..n { acc = acc.wrapping_add(g.sample(&mut bits)); }
        println!("ct gauss {:?} setup {:?} {:.1} ns {}", b, setup, t.elapsed().as_nanos() as f64/n as f64, acc);}
    }
    let mut bits = OsEntropy::new().open().unwrap();
    let t = Instant::now(); let mut acc=0u64; for _ in 0..10_000_000 { acc ^= bits.word(); }
    println!("word {:.2} ns {}", t.elapsed().as_nanos() as f64/1e7, acc);
}

//! throw-away timing
use proxlift::engine::*;
use proxlift::network::*;
use proxlift::operator::Filters;
use std::time::Instant;
fn main() {
    let arch = Architecture { depth: 15, features: 16, kernel: 3, channels: 1 };
    let theta: Vec<_> = (0..=15)
        .map(|k| {
            Filters::new(16, 1, 3, (0..144).map(|i| ((i * 7 + k) % 13) as f32 / 60.0 - 0.1).collect())
                .unwrap()
        })
        .collect();
    let net = Network::new(theta, vec![0.5; 14], vec![0.1; 16]).unwrap();
    for threads in [1, 2] {
        rayon::ThreadPoolBuilder::new().num_threads(threads).build().unwrap().install(|| {
            let peak = cpu::peak::fma_peak_gflops(20);
            let cpu = Cpu::new();
            let grid = arch.grid(32, 32).unwrap();
            let z = Field::from_planar(
                2,
                1,
                grid,
                &(0..2048).map(|i| (i % 17) as f32 / 17.0).collect::<Vec<f32>>(),
            )
            .unwrap();
            let x = z.clone();
            let mut g = Gradients::zeros(&net, 2);
            let mut best = f64::MAX;
            for _ in 0..3000 {
                let t = Instant::now();
                cpu.training_pass(&net, Reverse::Lifted { mu: 0.1 }, &z, &x, &mut g).unwrap();
                best = best.min(t.elapsed().as_secs_f64());
            }
            let gf = arch.training_flops() as f64 * 2048.0 / best / 1e9;
            println!(
                "{} peak {peak:.1}: pass {gf:.1} GFLOP/s = {:.0}% , {:.0} patches/s",
                cpu.name(),
                100.0 * gf / peak,
                2.0 / best
            );
            let u = {
                let mut u = Field::zeros(2, 16, grid);
                cpu.lift(&net.theta[0], &z, &mut u);
                u
            };
            let (mut r, mut v) = (z.clone(), u.clone());
            let conv = 2.0 * 144.0 * 2048.0;
            let mut tm = |name: &str, flop: f64, f: &mut dyn FnMut()| {
                let mut best = f64::MAX;
                for _ in 0..3000 {
                    let t = Instant::now();
                    f();
                    best = best.min(t.elapsed().as_secs_f64());
                }
                println!("   {name} {:.0}%", 100.0 * flop / best / 1e9 / peak);
            };
            tm("lift", conv, &mut || cpu.lift(&net.theta[0], &z, &mut v));
            tm("residual", conv, &mut || cpu.residual(&net.theta[0], &u, &z, &mut r));
            tm("layer", 2.0 * conv, &mut || cpu.layer(net.layer(1), &u, &z, &mut r, &mut v));
            let mut gg = net.theta[0].clone();
            tm("correlate", conv, &mut || cpu.correlate(1.0, &z, &u, &mut gg));
            let mut o = z.clone();
            tm("denoise", arch.forward_flops() as f64 * 2048.0, &mut || cpu.denoise(&net, &z, &mut o));
            let grid = arch.grid(321, 481).unwrap();
            let z = Field::from_planar(
                1,
                1,
                grid,
                &(0..321 * 481).map(|i| (i % 17) as f32 / 17.0).collect::<Vec<f32>>(),
            )
            .unwrap();
            let mut o = z.clone();
            let mut best = f64::MAX;
            for _ in 0..100 {
                let t = Instant::now();
                cpu.denoise(&net, &z, &mut o);
                best = best.min(t.elapsed().as_secs_f64());
            }
            let gf = arch.forward_flops() as f64 * (321 * 481) as f64 / best / 1e9;
            println!(
                "  forward image {gf:.1} GFLOP/s = {:.0}%, {:.2} MP/s",
                100.0 * gf / peak,
                321.0 * 481.0 / best / 1e6
            );
        });
    }
}

//! Memory is sized once and lent: what the fast engine, a lifted batch and a large picture allocate, counted.
//!
//! One test only, since the allocator counts for the whole program.

use proxlift::Denoiser;
use proxlift::engine::{Cpu, Engine, Gradients, ReverseRule};
use proxlift::field::Field;
use proxlift::image::Image;
use proxlift::image::io::{Depth, Limits, Picture, Raster, read_raster, write_raster};
use proxlift::laws::random_field;
use proxlift::network::{Architecture, Network};
use proxlift::operator::Filters;
use proxlift::training::Lifted;
use std::alloc::{GlobalAlloc, Layout, System};
use std::ops::ControlFlow;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering::SeqCst};

/// The system's allocator, and its books.
struct Counting;

static LIVE: AtomicUsize = AtomicUsize::new(0);
static PEAK: AtomicUsize = AtomicUsize::new(0);
static TOTAL: AtomicUsize = AtomicUsize::new(0);

fn book(bytes: usize) {
    TOTAL.fetch_add(bytes, SeqCst);
    let live = LIVE.fetch_add(bytes, SeqCst) + bytes;
    PEAK.fetch_max(live, SeqCst);
}

// SAFETY: every call is handed on to the system's allocator as it came.
unsafe impl GlobalAlloc for Counting {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        book(layout.size());
        unsafe { System.alloc(layout) }
    }
    unsafe fn alloc_zeroed(&self, layout: Layout) -> *mut u8 {
        book(layout.size());
        unsafe { System.alloc_zeroed(layout) }
    }
    unsafe fn dealloc(&self, pointer: *mut u8, layout: Layout) {
        LIVE.fetch_sub(layout.size(), SeqCst);
        unsafe { System.dealloc(pointer, layout) }
    }
    unsafe fn realloc(&self, pointer: *mut u8, layout: Layout, size: usize) -> *mut u8 {
        // Both blocks may be alive while the contents move.
        book(size);
        LIVE.fetch_sub(layout.size(), SeqCst);
        unsafe { System.realloc(pointer, layout, size) }
    }
}

#[global_allocator]
static ALLOCATOR: Counting = Counting;

/// What a call allocated in all, and by how much it raised the memory in use at its peak.
#[derive(Clone, Copy, Debug)]
struct Bytes {
    allocated: usize,
    peak: usize,
}

fn measure(f: impl FnOnce()) -> Bytes {
    let (total, live) = (TOTAL.load(SeqCst), LIVE.load(SeqCst));
    PEAK.store(live, SeqCst);
    f();
    Bytes { allocated: TOTAL.load(SeqCst) - total, peak: PEAK.load(SeqCst).saturating_sub(live) }
}

/// How many calls [`steady`] counts together.
const CALLS: usize = 8;

/// What [`CALLS`] calls in a row allocate, once a first few have sized the memory. It is the least of several such rows,
/// because which thread first takes part when is up to the system; but a call that allocates now and then is in each.
fn steady(mut f: impl FnMut()) -> usize {
    (0..3).for_each(|_| f());
    (0..5).map(|_| measure(|| (0..CALLS).for_each(|_| f())).allocated).min().unwrap()
}

const SHAPE: Architecture = Architecture { depth: 15, features: 16, kernel: 3, channels: 1 };
const SIDE: usize = 32;

fn network() -> Network<f32> {
    let theta = (0..=SHAPE.depth).map(|k| {
        let weights = random_field::<f32>(SHAPE.layer_parameters(), k as u64);
        Filters::new(SHAPE.features, SHAPE.channels, SHAPE.kernel, weights.iter().map(|w| 0.1 * w).collect())
            .unwrap()
    });
    Network::new(theta.collect(), vec![0.5; SHAPE.depth - 1], vec![0.1; SHAPE.features]).unwrap()
}

fn images(samples: usize, side: usize) -> Field<f32> {
    let grid = SHAPE.grid(side, side).unwrap();
    Field::from_planar(samples, 1, grid, &random_field(samples * grid.pixels(), 1)).unwrap()
}

/// `u_k` and `v_k`, `k = 1..K-1`, of a batch.
fn stored(samples: usize) -> usize {
    2 * (SHAPE.depth - 1) * SHAPE.features * SIDE * SIDE * size_of::<f32>() * samples
}

/// What rayon may take for its own queues, whatever the batch.
const QUEUES: usize = 4 << 10;

fn training_passes_allocate_nothing(threads: usize) {
    let pool = rayon::ThreadPoolBuilder::new().num_threads(threads).build().unwrap();
    let net = network();
    for samples in [10, 50] {
        let (engine, z) = (Cpu::new(), images(samples, SIDE));
        let mut gradients = Gradients::zeros(&net, samples);
        for rule in [ReverseRule::Backprop, ReverseRule::Lifted { mu: 0.1 }] {
            let pass = || {
                pool.install(|| engine.training_pass(&net, rule, &z, &z, &mut gradients)).unwrap();
            };
            let bytes = steady(pass);
            println!("{threads} threads, {samples} samples: {CALLS} training passes allocate {bytes} bytes");
            assert!(bytes < QUEUES, "{bytes} bytes in training passes of {samples} on {threads} threads");
        }
    }
}

fn the_first_training_pass_needs_little_more_than_u_and_v(threads: usize) {
    let pool = rayon::ThreadPoolBuilder::new().num_threads(threads).build().unwrap();
    let (net, engine, z) = (network(), Cpu::new(), images(50, SIDE));
    let mut gradients = Gradients::zeros(&net, 50);
    let rule = ReverseRule::Lifted { mu: 0.1 };
    let bytes =
        measure(|| pool.install(|| engine.training_pass(&net, rule, &z, &z, &mut gradients)).unwrap());
    // u and v of the samples at work, one a thread, and the gradients of every sample.
    let summands = 50 * SHAPE.parameters() * size_of::<f32>();
    let bound = 3 * stored(threads) / 2 + summands;
    println!("{threads} threads: the first pass peaks at {bytes:?}; {} are u and v of a batch", stored(50));
    assert!(bytes.peak > stored(1), "the allocator does not count");
    assert!(bytes.peak <= bound, "{bytes:?}, more than {bound}");
    assert!(2 * bytes.peak <= 3 * stored(50));
}

fn a_lifted_batch_needs_little_more_than_u_and_v() {
    let (net, engine, z) = (network(), Cpu::new(), images(50, SIDE));
    let x = z.clone();
    let mut lifted = None;
    let bytes = measure(|| {
        let mut batch = Lifted::new(&net, z, x).unwrap();
        batch.anchor((&engine, &net));
        lifted = Some(batch);
    });
    println!("a lifted batch of 50 peaks at {bytes:?}; its u and v are {}", stored(50));
    assert!(bytes.peak >= stored(50) && 2 * bytes.peak <= 3 * stored(50), "{bytes:?}");
    // Anchoring again and the gradients reuse that memory.
    let mut lifted = lifted.unwrap();
    let mut gradients = Gradients::zeros(&net, 50);
    let mut u = lifted.u.clone();
    let again = steady(|| {
        lifted.anchor((&engine, &net));
        lifted.theta_gradients((&engine, &net), 0.1, &mut gradients.theta);
        lifted.u_gradients((&engine, &net), 0.1, &mut u);
    });
    println!("anchoring and all gradients of a lifted batch allocate {again} bytes in {CALLS} rounds");
    // Lists of numbers for each sample, and no field.
    assert!(again < CALLS * 2 * QUEUES, "{again}");
}

fn denoising_allocates_its_list_of_strips_only(threads: usize) {
    let pool = rayon::ThreadPoolBuilder::new().num_threads(threads).build().unwrap();
    let net = network();
    for (samples, side) in [(1, 32), (50, 32), (1, 256)] {
        let (engine, z) = (Cpu::new(), images(samples, side));
        let mut output = z.clone();
        let bytes = steady(|| pool.install(|| engine.denoise(&net, &z, &mut output)));
        println!(
            "{threads} threads: denoising {samples} of {side} x {side} allocates {bytes} bytes in {CALLS} calls"
        );
        // A strip is its rows and the handles of its memory; an image that many others go with is one strip.
        let strips = if samples < threads { threads } else { samples };
        assert!(bytes < QUEUES + CALLS * 450 * strips, "{bytes} bytes for {strips} strips");
    }
}

/// Reading, denoising and writing take the picture in its depth, and a tile of it in floats.
fn a_large_picture_stays_in_its_depth() {
    const SIDE: usize = 1500;
    let folder = tempfile::tempdir().unwrap();
    let noise: Vec<f32> = random_field::<f32>(SIDE * SIDE, 3).iter().map(|v| 0.5 + 0.3 * v).collect();
    for (name, depth, stored) in [
        ("a.png", Depth::Eight, 1),
        ("b.png", Depth::Sixteen, 2),
        ("c.tif", Depth::Eight, 1),
        ("d.tif", Depth::Sixteen, 2),
        ("e.tif", Depth::Float, 4),
    ] {
        let (path, stored) = (folder.path().join(name), stored * SIDE * SIDE);
        let picture = Picture::new(Image::new(1, SIDE, SIDE, noise.clone()).unwrap(), depth);
        let raster = Raster::of_picture(&picture).unwrap();
        drop(picture);
        let writing = measure(|| write_raster(&path, &raster).unwrap()).peak;
        drop(raster);
        let mut raster = None;
        let reading = measure(|| raster = Some(read_raster(&path, &Limits::default()).unwrap())).peak;
        println!("{name}: {stored} bytes; writing peaks at {writing}, reading at {reading}");
        assert!(writing < stored / 2, "{name}: {writing} bytes to write {stored}");
        assert!(
            reading >= stored && reading < stored + (1 << 20),
            "{name}: {reading} bytes to read {stored}"
        );
        if depth == Depth::Eight && name == "a.png" {
            let (bytes, mut raster) = (1 << 20, raster.unwrap());
            let denoiser = Denoiser::from(network()).engine(Arc::new(Cpu::new().tile_bytes(bytes)));
            let mut tiles = 0;
            let mut progress = |_, all| {
                tiles = all;
                ControlFlow::Continue(())
            };
            let run = || assert_eq!(denoiser.denoise_raster(&mut raster, &mut progress).unwrap(), None);
            let peak = measure(run).peak;
            println!("denoising peaks at {peak} in {tiles} tiles with {bytes} of features");
            assert!(tiles > 100 && peak < 4 * bytes, "{peak} bytes");
        }
    }
}

#[test]
fn memory_is_sized_once_and_lent() {
    for threads in [1, 2] {
        the_first_training_pass_needs_little_more_than_u_and_v(threads);
        training_passes_allocate_nothing(threads);
        denoising_allocates_its_list_of_strips_only(threads);
    }
    a_lifted_batch_needs_little_more_than_u_and_v();
    a_large_picture_stays_in_its_depth();
}

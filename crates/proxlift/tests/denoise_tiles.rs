//! Pictures denoised tile by tile have the bits of the whole.

use proxlift::Denoiser;
use proxlift::engine::{Cpu, Cut, Engine, Tiles};
use proxlift::field::Field;
use proxlift::image::Image;
use proxlift::image::io::{Depth, Picture, Raster};
use proxlift::laws::random_field;
use proxlift::network::{Architecture, Network};
use std::ops::ControlFlow;
use std::sync::Arc;

fn network(channels: usize) -> Network<f32> {
    let architecture = Architecture { depth: 3, features: 6, kernel: 3, channels };
    Network::glorot(architecture, 0.1, 1).unwrap()
}

fn picture(channels: usize, (height, width): (usize, usize), depth: Depth, alpha: bool) -> Picture {
    let value = |v: &f32| 0.5 + 0.4 * v;
    let data = random_field::<f32>(channels * height * width, 5).iter().map(value).collect();
    let image = Image::new(channels, height, width, data).unwrap();
    let alpha = alpha.then(|| random_field::<f32>(height * width, 6).iter().map(value).collect());
    // What a file of that depth would give.
    Raster::of_picture(&Picture { alpha, ..Picture::new(image, depth) }).unwrap().into_picture()
}

/// The image at once, with its border.
fn whole(network: &Network<f32>, image: &Image) -> Image {
    let (architecture, border) = (network.architecture(), network.border);
    let (channels, height, width) = image.shape();
    let seen = image.mirrored((border, border), (border, border));
    let grid = architecture.grid(seen.height(), seen.width()).unwrap();
    let samples = channels / architecture.channels;
    let z = Field::from_planar(samples, architecture.channels, grid, seen.data()).unwrap();
    let mut output = z.clone();
    Cpu::new().denoise(network, &z, &mut output);
    let data = output.crop(border..border + height, border..border + width);
    Image::new(channels, height, width, data).unwrap()
}

/// Tile by tile from the last on, each from what it sees alone.
fn by_tile(denoiser: &Denoiser, image: &Image) -> Image {
    let (size, channels) = ((image.height(), image.width()), image.kind());
    let ready = denoiser.prepare_settled(channels, &denoiser.settle(image).unwrap()).unwrap();
    let mut result = Image::zeros(image.channels(), size.0, size.1).unwrap();
    for tile in ready.tiles(channels, size).unwrap().iter().rev() {
        let seen = image.crop(tile.rows.seen.clone(), tile.columns.seen.clone());
        let wanted = ready.denoise_tile(tile, size, seen, &mut |_, _| ControlFlow::Continue(())).unwrap();
        result.put((tile.rows.wanted.start, tile.columns.wanted.start), &wanted);
    }
    result
}

#[test]
fn total_variation_and_no_work_are_one_tile() {
    let image = picture(3, (20, 30), Depth::Float, false).image;
    for denoiser in [Denoiser::total_variation().sigma(0.1), Denoiser::best().sigma(0.0)] {
        assert_eq!(by_tile(&denoiser, &image), denoiser.denoise(&image).unwrap());
        let ready = denoiser.prepare_pixels(&image).unwrap();
        let [tile] = &ready.tiles(image.kind(), (20, 30)).unwrap()[..] else { panic!("several tiles") };
        let part = image.crop(0..10, 0..30);
        let error = ready.denoise_tile(tile, (20, 30), part, &mut |_, _| ControlFlow::Continue(()));
        assert!(error.unwrap_err().to_string().contains("30 x 10"));
    }
}

/// Denoises in the smallest tiles, and returns how many they are.
fn check(network: &Network<f32>, picture: &Picture) -> usize {
    let denoiser = Denoiser::from(network.clone()).engine(Arc::new(Cpu::new().tile_bytes(0)));
    let expected = Picture { image: whole(network, &picture.image), ..picture.clone() };
    let mut raster = Raster::of_picture(picture).unwrap();
    let mut told = Vec::new();
    let mut progress = |done, all| {
        told.push((done, all));
        ControlFlow::Continue(())
    };
    denoiser.denoise_raster(&mut raster, &mut progress).unwrap();
    let what = format!("{:?} {:?} alpha {}", picture.image.shape(), picture.depth, picture.alpha.is_some());
    assert!(raster == Raster::of_picture(&expected).unwrap(), "{what}");
    assert!(raster != Raster::of_picture(picture).unwrap(), "{what}: nothing was done");
    assert_eq!(denoiser.denoise(&picture.image).unwrap(), expected.image, "{what}, in memory");
    assert_eq!(by_tile(&denoiser, &picture.image), expected.image, "{what}, each tile by itself");
    let (_, all) = told[0];
    assert_eq!(told, (0..=all).map(|done| (done, all)).collect::<Vec<_>>());
    all
}

#[test]
fn tiles_give_the_bits_of_the_whole_at_any_size() {
    let networks = [network(1), Network { border: 5, ..network(1) }];
    let sizes = [(101, 77), (1, 301), (301, 1), (2, 257), (25, 24), (49, 131), (24, 200), (1, 1), (600, 3)];
    for network in networks {
        let tiles = sizes.map(|size| check(&network, &picture(1, size, Depth::Float, false)));
        assert!(tiles.iter().filter(|&&count| count > 3).count() >= 5, "{tiles:?}");
    }
}

#[test]
fn tiles_give_the_bits_of_the_whole_at_any_depth() {
    for depth in [Depth::Eight, Depth::Sixteen, Depth::Float] {
        for (of_network, channels, alpha) in
            [(1, 1, false), (1, 1, true), (1, 3, true), (3, 3, false), (3, 3, true)]
        {
            assert!(check(&network(of_network), &picture(channels, (53, 67), depth, alpha)) > 4);
        }
    }
}

#[test]
fn a_border_is_the_mirrored_picture() {
    let network = Network { border: 4, ..network(3) };
    let image = picture(3, (9, 2), Depth::Float, false).image;
    let larger = image.mirrored((4, 4), (4, 4));
    let plain = Network { border: 0, ..network.clone() };
    let (with, around) = (whole(&network, &image), whole(&plain, &larger));
    for c in 0..3 {
        for y in 0..9 {
            assert_eq!(with.plane(c)[y * 2..][..2], around.plane(c)[(y + 4) * 10 + 4..][..2]);
        }
    }
    assert_ne!(with, whole(&plain, &image));
}

#[test]
fn the_engine_cuts_large_images_without_a_trace() {
    let architecture = Architecture { depth: 2, features: 64, kernel: 3, channels: 1 };
    let network = Network::<f32>::glorot(architecture, 0.1, 1).unwrap();
    // Samples share the memory for features: sixteen at a time go in tiles, one alone goes at once.
    const SAMPLES: usize = 16;
    let pool = rayon::ThreadPoolBuilder::new().num_threads(SAMPLES).build().unwrap();
    for (height, width) in [(120, 1001), (1001, 120)] {
        let grid = architecture.grid(height, width).unwrap();
        let planar = random_field(grid.pixels(), 2);
        let batch = Field::from_planar(SAMPLES, 1, grid, &planar.repeat(SAMPLES)).unwrap();
        let mut output = batch.clone();
        pool.install(|| Cpu::new().denoise(&network, &batch, &mut output));
        let image = Image::new(1, height, width, planar).unwrap();
        let alone = whole(&network, &image);
        for (s, cut) in output.to_planar().chunks_exact(grid.pixels()).enumerate() {
            assert!(cut == alone.data(), "sample {s} of {height} x {width}");
        }
    }
}

#[test]
fn crops_are_those_of_the_planar_picture() {
    for depth in [Depth::Eight, Depth::Sixteen, Depth::Float] {
        let picture = picture(3, (20, 30), depth, true);
        let raster = Raster::of_picture(&picture).unwrap();
        let crop = raster.crop(5..17, 3..30);
        assert_eq!(crop, picture.image.crop(5..17, 3..30));
        for c in 0..3 {
            for (y, row) in crop.plane(c).chunks_exact(27).enumerate() {
                assert_eq!(row, &picture.image.plane(c)[(y + 5) * 30 + 3..][..27]);
            }
        }
        let mut put = Image::zeros(3, 20, 30).unwrap();
        put.put((5, 3), &crop);
        assert_eq!(put.crop(5..17, 3..30), crop);
        assert!(put.crop(0..5, 0..30).data().iter().chain(put.crop(0..20, 0..3).data()).all(|&v| v == 0.0));
        assert_eq!(picture.image.centre(10), picture.image.crop(5..15, 10..20));
        let largest = picture.image.data().iter().fold(0.0f32, |most, v| most.max(v.abs()));
        assert_eq!(raster.largest(), largest);
    }
}

#[test]
fn tiles_want_every_pixel_once_and_see_enough() {
    for (depth, kernel) in [(2, 1), (3, 3), (4, 7)] {
        let architecture = Architecture { depth, features: 4, kernel, channels: 1 };
        let reach = architecture.receptive_radius();
        for (length, bytes) in [(1, 0), (10, 0), (101, 0), (100, 1 << 16), (1000, 1 << 18), (41, 1 << 14)] {
            let tiles = Tiles::new(architecture, length, length + 3, bytes);
            for (length, cuts, reach) in
                [(length, &tiles.rows, reach + 1), (length + 3, &tiles.columns, reach)]
            {
                let mut next = 0;
                for Cut { wanted, around } in cuts {
                    assert_eq!(wanted.start, next);
                    assert!(!wanted.is_empty() && around.len() == cuts[0].around.len());
                    assert!(around.start.is_multiple_of(2));
                    let sees = wanted.start.saturating_sub(reach)..(wanted.end + reach).min(length);
                    assert!(around.start <= sees.start && sees.end <= around.end && around.end <= length);
                    next = wanted.end;
                }
                assert_eq!(next, length, "{depth} {kernel} {bytes}");
            }
        }
    }
}

#[test]
fn tiles_of_any_image_fit_the_memory() {
    const BYTES: usize = 256 << 20;
    let architecture = Architecture { depth: 10, features: 32, kernel: 5, channels: 1 };
    for (height, width) in
        [(20_000, 20_000), (2_000, 20_000), (20_000, 500), (1, 400_000_000), (400_000_000, 1)]
    {
        let tiles = Cpu::new().tiles(architecture, height, width);
        for (rows, columns) in tiles.iter() {
            let pixels = rows.around.len() * columns.around.len();
            assert!(4 * 32 * pixels <= BYTES, "{height} x {width}: {rows:?} {columns:?}");
        }
        let seen: usize = tiles.iter().map(|(r, c)| r.around.len() * c.around.len()).sum();
        assert!(seen < height * width / 100 * 120, "{height} x {width}: {seen} pixels are seen");
    }
    // The least kernel and budget.
    let tiles = Tiles::new(Architecture { kernel: 1, ..architecture }, 100, 100, 0);
    assert!(tiles.count() > 100, "{tiles:?}");
}

//! Networks of stride 2: phases, tiles, derivatives, and what is refused.

use proxlift::Denoiser;
use proxlift::engine::{Cpu, Engine};
use proxlift::field::phases::{apart, together};
use proxlift::image::{Channels, Image};
use proxlift::laws::random_field;
use proxlift::network::{Architecture, Network, Unrolling};
use proxlift::operator::Filters;
use std::sync::Arc;

fn network(colours: usize) -> Network<f32> {
    let architecture = Architecture { depth: 3, features: 6, kernel: 3, channels: 4 * colours };
    let network = Network::glorot(architecture, 0.1, 1).unwrap().with_knots(2);
    Network { border: 4, ..network.unrolled(Unrolling::ChambollePockAccelerated, 2.0, 1) }
}

fn picture(channels: usize, (height, width): (usize, usize)) -> Image {
    let data = random_field::<f32>(channels * height * width, 5).iter().map(|v| 0.5 + 0.4 * v).collect();
    Image::new(channels, height, width, data).unwrap()
}

#[test]
fn phases_are_every_second_pixel_of_every_second_row_and_come_together_again() {
    let image: Vec<f32> = (0..24).map(|i| i as f32).collect();
    let phases = apart(&image, (4, 6), 2);
    assert_eq!(phases[..6], [0.0, 2.0, 4.0, 12.0, 14.0, 16.0]);
    assert_eq!(phases[6..12], [1.0, 3.0, 5.0, 13.0, 15.0, 17.0]);
    assert_eq!(phases[12..18], [6.0, 8.0, 10.0, 18.0, 20.0, 22.0]);
    assert_eq!(together(&*phases, (2, 3), 2), image);
    let colour = random_field::<f32>(3 * 8 * 10, 3);
    assert_eq!(together(&*apart(&colour, (8, 10), 2), (4, 5), 2), colour);
    assert_eq!(apart(&colour, (8, 10), 1), colour);
}

/// The convolution of the phases is one of stride 2 on the image, with kernels twice as large.
#[test]
fn a_layer_is_a_strided_convolution() {
    let sizes = network(3).architecture();
    assert_eq!((sizes.stride(), sizes.colours(), sizes.receptive_radius()), (2, 3, 13));
    let theta = &network(3).theta[0];
    let (height, width) = (6, 8);
    let image = random_field::<f32>(3 * height * width, 9);
    let z = sizes.batch(&image, (height, width)).unwrap();
    let grid = z.grid();
    let mut u = proxlift::field::Field::zeros(1, sizes.features, grid);
    Cpu::new().analyse(theta, &z, &mut u);
    let kernels = together(theta.weights(), (3, 3), 2);
    for (j, y, x) in (0..sizes.features).flat_map(|j| (0..12usize).map(move |p| (j, p / 4, p % 4))) {
        let mut sum = 0.0;
        for (c, ky, kx) in (0..3).flat_map(|c| (0..36usize).map(move |t| (c, t / 6, t % 6))) {
            // The kernel of 6 x 6 reaches two pixels up and left of those that the feature stands for.
            let (row, column) = ((2 * y + ky).wrapping_sub(2), (2 * x + kx).wrapping_sub(2));
            if row < height && column < width {
                sum += kernels[(j * 3 + c) * 36 + ky * 6 + kx] * image[(c * height + row) * width + column];
            }
        }
        assert!((sum - u.at(0, j, y as isize, x as isize)).abs() < 1e-5, "feature {j} at {y}, {x}");
    }
}

/// The picture at once, mirrored by the border and to even sides.
fn whole(network: &Network<f32>, image: &Image) -> Image {
    let (sizes, border) = (network.architecture(), network.border);
    let (channels, height, width) = image.shape();
    let seen = image.mirrored((border, border + height % 2), (border, border + width % 2));
    let z = sizes.batch(seen.data(), (seen.height(), seen.width())).unwrap();
    let mut output = z.clone();
    Cpu::new().denoise(network, &z, &mut output);
    let seen = Image::new(channels, seen.height(), seen.width(), sizes.images(&output)).unwrap();
    seen.crop(border..border + height, border..border + width)
}

#[test]
fn tiles_give_the_bits_of_the_whole_at_even_and_odd_sizes() {
    let sizes = [(101, 77), (1, 301), (300, 1), (2, 257), (49, 132), (1, 1), (164, 163)];
    for (colours, size) in sizes.into_iter().flat_map(|size| [(1, size), (3, size)]) {
        let (network, noisy) = (network(colours), picture(colours, size));
        let expected = whole(&network, &noisy);
        for bytes in [0, 1 << 30] {
            let denoiser = Denoiser::from(network.clone()).engine(Arc::new(Cpu::new().tile_bytes(bytes)));
            assert_eq!(denoiser.denoise(&noisy).unwrap(), expected, "{size:?}, tiles of {bytes} bytes");
        }
    }
}

/// A network for grey pictures takes the channels of a colour picture one by one.
#[test]
fn a_grey_network_denoises_colour_by_channels() {
    let (network, noisy) = (network(1), picture(3, (31, 20)));
    let result = Denoiser::from(network.clone()).denoise(&noisy).unwrap();
    for c in 0..3 {
        let plane = Image::new(1, 31, 20, noisy.plane(c).to_vec()).unwrap();
        assert_eq!(whole(&network, &plane).data(), result.plane(c));
    }
}

/// `<J dz, g> = <dz, J* g>`, where activations are straight lines and `J dz` is the difference of two results.
#[test]
fn gradients_go_through() {
    for colours in [1, 3] {
        let size = (17, 12);
        let mut network = network(colours);
        network.learned_mut().for_each(|s| s.parts_mut()[1].fill(0.7));
        let denoiser = Denoiser::from(network).as_trained();
        let (noisy, g) = (picture(colours, size), picture(colours, size));
        let (estimate, back) = denoiser.pull_back(&noisy, &g).unwrap();
        let dz = random_field::<f32>(noisy.data().len(), 11);
        let moved = noisy.data().iter().zip(&dz).map(|(z, dz)| z + dz).collect();
        let moved = denoiser.denoise(&Image::new(colours, size.0, size.1, moved).unwrap()).unwrap();
        let dot = |a: &[f32], b: &[f32]| a.iter().zip(b).map(|(a, b)| f64::from(a * b)).sum::<f64>();
        let through = dot(moved.data(), g.data()) - dot(estimate.data(), g.data());
        let pulled = dot(&dz, back.data());
        assert!((through - pulled).abs() < 1e-4 * pulled.abs().max(1.0), "{through} and {pulled}");
    }
}

/// What filters of zero mean do not see is a constant picture, whatever its phases.
#[test]
fn centered_filters_do_not_see_a_constant_and_see_a_chequered_board() {
    let mut theta = network(3).theta[1].clone();
    theta.center();
    let kernels = together(theta.weights(), (3, 3), 2);
    for kernel in kernels.chunks_exact(36) {
        assert!(kernel.iter().sum::<f32>().abs() < 1e-5);
    }
    let board = |kernel: &[f32]| -> f32 {
        kernel.iter().enumerate().map(|(t, w)| if (t / 6 + t % 6) % 2 == 0 { *w } else { -*w }).sum()
    };
    assert!(kernels.chunks_exact(36).any(|kernel| board(kernel).abs() > 0.1));
}

#[test]
fn files_keep_the_stride() {
    let model = proxlift::model::Model {
        network: network(1),
        sigma: 0.1,
        noise: Default::default(),
        provenance: Default::default(),
    };
    let read = proxlift::model::Model::from_bytes(&model.to_bytes().unwrap()).unwrap();
    assert_eq!(read.network, model.network);
    assert_eq!(Denoiser::from(read.network.clone()).channels(), Some(Channels::Grey));
    assert!(read.network.to_string().contains("stride 2, grey"), "{}", read.network);
}

#[test]
fn what_does_not_fit_is_refused() {
    let error = Network { border: 3, ..network(1) }.validate().unwrap_err().to_string();
    assert!(error.contains("must be even"), "{error}");
    let sizes = network(1).architecture();
    let error = sizes.batch(&[0.0f32; 15], (3, 5)).unwrap_err().to_string();
    assert!(error.contains("give even sides"), "{error}");
    let two = Filters::new(2, 2, 3, vec![0.1f32; 36]).unwrap();
    let error = Network::new(vec![two; 3], vec![0.1], vec![0.1; 2]).unwrap_err().to_string();
    assert!(error.contains("channels"), "{error}");
}

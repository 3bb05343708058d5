//! A network has no direction of its own: turned pictures and turned filters give the turned result, and so do gradients.
//! Nor has it an order of features.

use super::energy::family;
use super::*;
use proxlift::engine::Turned;
use proxlift::image::{Image, symmetry::Symmetry};

/// A turn or a mirror image: from a size to that of the result, and from a pixel of the result to its origin.
#[derive(Clone, Copy, Debug)]
enum Turn {
    Quarter,
    Half,
    Transpose,
}

impl Turn {
    const ALL: [Self; 3] = [Self::Quarter, Self::Half, Self::Transpose];

    fn sides(self, (height, width): (usize, usize)) -> (usize, usize) {
        if matches!(self, Self::Half) { (height, width) } else { (width, height) }
    }

    fn plane<T: Copy>(self, plane: &[T], (height, width): (usize, usize)) -> Vec<T> {
        let (rows, columns) = self.sides((height, width));
        let at = |y: usize, x: usize| match self {
            Self::Quarter => (height - 1 - x, y),
            Self::Half => (height - 1 - y, width - 1 - x),
            Self::Transpose => (x, y),
        };
        let places = (0..rows).flat_map(|y| (0..columns).map(move |x| at(y, x)));
        places.map(|(y, x)| plane[y * width + x]).collect()
    }

    fn field<T: Real>(self, network: &Network<T>, field: &Field<T>) -> Field<T> {
        let sides = (field.grid().height(), field.grid().width());
        let turned: Vec<T> =
            field.to_planar().chunks(sides.0 * sides.1).flat_map(|p| self.plane(p, sides)).collect();
        let (height, width) = self.sides(sides);
        let grid = network.architecture().grid(height, width).unwrap();
        Field::from_planar(field.samples(), field.channels(), grid, &turned).unwrap()
    }

    fn filters<T: Real>(self, filters: &Filters<T>) -> Filters<T> {
        let size = filters.size();
        let weights =
            filters.weights().chunks(size * size).flat_map(|kernel| self.plane(kernel, (size, size)));
        Filters::new(filters.features(), filters.channels(), size, weights.collect()).unwrap()
    }

    fn network<T: Real>(self, network: &Network<T>) -> Network<T> {
        Network { theta: network.theta.iter().map(|theta| self.filters(theta)).collect(), ..network.clone() }
    }
}

fn denoised<T: Real>(engine: &dyn Engine<T>, network: &Network<T>, z: &Field<T>) -> Vec<T> {
    let mut output = z.clone();
    engine.denoise(network, z, &mut output);
    output.to_planar()
}

/// Filters' gradients, and those of the activations in a row.
fn gradients<T: Real>(
    engine: &dyn Engine<T>,
    network: &Network<T>,
    rule: ReverseRule<T>,
    (z, x): (&Field<T>, &Field<T>),
) -> (Vec<Filters<T>>, Vec<T>) {
    let mut gradients = Gradients::zeros(network, z.samples()).with_activations(network);
    engine.training_pass(network, rule, z, x, &mut gradients).unwrap();
    let activations = gradients.activation.iter().flat_map(|g| [g.knots.clone(), g.slopes.clone()].concat());
    (gradients.theta, activations.collect())
}

fn turns_with_its_picture<T: Real>(
    engine: &dyn Engine<T>,
    net: &Network<T>,
    (z, x): (&Field<T>, &Field<T>),
    rules: &[ReverseRule<T>],
    tolerance: f64,
) {
    for turn in Turn::ALL {
        let what = format!("{} {:?} {} {turn:?}", engine.name(), net.architecture(), net.unrolling);
        let turned = turn.network(net);
        let (turned_z, turned_x) = (turn.field(net, z), turn.field(net, x));
        let mut output = z.clone();
        output.load(&denoised(engine, net, z)).unwrap();
        let (before, after) = (turn.field(net, &output).to_planar(), denoised(engine, &turned, &turned_z));
        let off = max_relative_difference(&before, &after);
        assert!(off < tolerance, "{what}: {off:e}");
        // Turned filters on the picture as it was give something else.
        let other = max_relative_difference(&denoised(engine, &turned, z), &output.to_planar());
        assert!(other > 1e-3, "{what}: the turn does not matter");
        for &rule in rules {
            let (theta, activations) = gradients(engine, net, rule, (z, x));
            let (turned_theta, again) = gradients(engine, &turned, rule, (&turned_z, &turned_x));
            for (k, (theta, after)) in theta.iter().zip(&turned_theta).enumerate() {
                let off = max_relative_difference(turn.filters(theta).weights(), after.weights());
                assert!(off < tolerance, "{what} {rule:?} theta_{k}: {off:e}");
            }
            let off = max_relative_difference(&activations, &again);
            assert!(off < tolerance, "{what} {rule:?} activations: {off:e}");
        }
    }
}

#[test]
fn turned_pictures_and_filters_give_the_turned_result_and_turned_gradients() {
    for net in shapes().into_iter().flat_map(family) {
        let pair = (&images(&net, 1), &images(&net, 2));
        let rules = [ReverseRule::Backprop, ReverseRule::Lifted { mu: MU }, ReverseRule::Centred { mu: MU }];
        turns_with_its_picture(&Reference, &net, pair, &rules, 1e-11);
    }
}

/// The fast engine goes through rows and columns in very different ways.
#[test]
fn the_fast_engine_turns_as_well() {
    for net in shapes().into_iter().flat_map(family) {
        let (net, architecture) = (net.cast::<f32>(), net.architecture());
        for (height, width) in [(37, 50), (19, 6)] {
            let grid = architecture.grid(height, width).unwrap();
            let field = |seed| {
                let planar = random_field(architecture.channels * grid.pixels(), seed);
                Field::from_planar(1, architecture.channels, grid, &planar).unwrap()
            };
            // Slopes jump in back-propagation: a pixel that rounding moves over a knot would be seen.
            let rules = if net.bounded { vec![] } else { vec![ReverseRule::Lifted { mu: 0.3 }] };
            turns_with_its_picture(&Cpu::new(), &net, (&field(1), &field(2)), &rules, 2e-5);
        }
    }
}

#[test]
fn the_order_of_features_does_not_matter() {
    for net in shapes().into_iter().flat_map(family) {
        let features = net.architecture().features;
        let order: Vec<usize> = (0..features).map(|j| (j + 1) % features).collect();
        let reordered = |values: &[f64]| -> Vec<f64> {
            let rows: Vec<&[f64]> = values.chunks(values.len() / features).collect();
            order.iter().flat_map(|&j| rows[j].to_vec()).collect()
        };
        let mut other = net.clone();
        for theta in &mut other.theta {
            let weights = reordered(theta.weights());
            theta.weights_mut().copy_from_slice(&weights);
        }
        for activation in &mut other.activation {
            for part in activation.piecewise_mut().unwrap().parts_mut() {
                let values = reordered(part);
                part.copy_from_slice(&values);
            }
        }
        let z = images(&net, 1);
        let off = max_relative_difference(&denoised(&Reference, &net, &z), &denoised(&Reference, &other, &z));
        assert!(off < 1e-12 && net != other, "{:?} {}: {off:e}", net.architecture(), net.unrolling);
    }
}

#[test]
fn turned_filters_are_the_picture_turned_there_and_back_and_the_turned_engine_is_their_mean() {
    // With stride 2 the phases change places too.
    for (channels, colours) in [(1, 1), (3, 3), (4, 1), (12, 3)] {
        let architecture = Architecture { depth: 3, features: 4, kernel: 3, channels };
        let net = network(architecture, 0.2).with_own_synthesis().cast::<f32>();
        let (height, width) = (12, 8);
        let pixels = random_field::<f32>(colours * height * width, 5);
        let picture = Image::new(colours, height, width, pixels).unwrap();
        let of = |engine: &dyn Engine<f32>, net: &Network<f32>, picture: &Image| {
            let size = (picture.height(), picture.width());
            let z = architecture.batch(picture.data(), size).unwrap();
            let mut output = z.zeros_like();
            engine.denoise(net, &z, &mut output);
            let (rows, columns) = (0..z.grid().height(), 0..z.grid().width());
            Image::new(colours, size.0, size.1, architecture.images_of(&output, (rows, columns))).unwrap()
        };
        let cpu = Cpu::new();
        let mut mean = vec![0.0; picture.data().len()];
        for symmetry in Symmetry::all() {
            let there = symmetry.image(&of(&cpu, &net, &picture));
            let turned = of(&cpu, &net.turned(symmetry), &symmetry.image(&picture));
            let off = max_relative_difference(there.data(), turned.data());
            assert!(off < 1e-5, "{architecture:?} {symmetry:?}: {off:e}");
            let one = of(&cpu, &net.turned(symmetry), &picture);
            mean.iter_mut().zip(one.data()).for_each(|(mean, one)| *mean += one / 8.0);
        }
        let turned = of(&Turned(std::sync::Arc::new(cpu)), &net, &picture);
        let off = max_relative_difference(&mean, turned.data());
        assert!(off < 1e-6, "{architecture:?}: {off:e}");
        // The mean has no direction of its own.
        let engine = Turned(std::sync::Arc::new(Cpu::new()));
        for symmetry in Symmetry::all() {
            let there = symmetry.image(&turned);
            let off =
                max_relative_difference(there.data(), of(&engine, &net, &symmetry.image(&picture)).data());
            assert!(off < 1e-5, "{architecture:?} {symmetry:?}: {off:e}");
        }
    }
}

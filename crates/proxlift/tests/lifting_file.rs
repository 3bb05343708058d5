//! Files of general networks: every layer and activation comes back bit for bit, and what is no network is refused.

use proxlift::Real;
use proxlift::laws::random_field;
use proxlift::lifting::{Affine, Convolutional, Dense, DualStep, Loss, Network, Rows, Synthesis};
use proxlift::network::Activation;
use proxlift::operator::Filters;
use proxlift::prox::{
    BoxClip, GroupL2, Identity, L2Ball, PiecewiseLinear, Relu, Sigmoid, Simplex, SoftThreshold, Softmax,
};
use proxlift::random::seeded;

const SIDES: (usize, usize) = (5, 6);

fn filters<T: Real>(features: usize, channels: usize, seed: u64) -> Filters<T> {
    Filters::new(features, channels, 3, random_field::<T>(features * channels * 9, seed)).unwrap()
}

/// Every kind of layer and of activation.
fn networks<T: Real>() -> Vec<Network<T>> {
    let t = |values: &[f64]| values.iter().map(|&v| T::of(v)).collect::<Vec<T>>();
    let rng = &mut seeded(3);
    let mut dense = |inputs, outputs| Dense::<T>::random(inputs, outputs, 2f64.sqrt(), rng).unwrap();
    let learned =
        PiecewiseLinear::new(2, t(&[0.1, 0.3, 0.2, 0.7]), t(&[1.0, 0.3, 0.1, 0.9, 0.7, 0.2])).unwrap();
    let chain = Network::new(Loss::Softmax)
        .layer(dense(7, 6), BoxClip::interval(t(&[-0.1]), t(&[1.0 / 3.0])).unwrap())
        .layer(dense(6, 6), SoftThreshold::new(t(&[0.1])).unwrap())
        .layer(dense(6, 4), L2Ball::new(4, 2, t(&[0.3])).unwrap())
        .layer(dense(4, 4), GroupL2::new(4, 4, t(&[0.3])).unwrap())
        .layer(dense(4, 4), learned)
        .layer(dense(4, 4), Simplex::new(4).unwrap())
        .layer(dense(4, 4), Softmax::new(4).unwrap())
        .layer(dense(4, 4), Sigmoid::default())
        .layer(dense(4, 4), Identity)
        .output(dense(4, 3));
    let first = Convolutional::random(4, 2, 3, SIDES, 2, 1.0, &mut seeded(4)).unwrap();
    let numbers = first.outputs();
    let convolutional = Network::new(Loss::Logistic).layer(first, Relu);
    let convolutional = convolutional.output(Dense::random(numbers, 2, 1.0, &mut seeded(5)).unwrap());
    let clip = || Activation::clip(t(&[0.2, 0.3]));
    let denoiser = Network::new(Loss::Squared)
        .layer(DualStep::first(filters(2, 1, 1), filters(2, 1, 2), T::of(0.1), SIDES).unwrap(), clip())
        .layer(DualStep::new(filters(2, 1, 3), T::of(0.3), SIDES).unwrap(), clip())
        .output(Synthesis::new(filters(2, 1, 4), SIDES).unwrap());
    vec![chain.unwrap(), convolutional.unwrap(), denoiser.unwrap()]
}

fn output<T: Real>(network: &Network<T>) -> Vec<T> {
    let inputs = network.layers()[0].inputs();
    network.forward(&Rows::new(inputs, random_field(3 * inputs, 9)).unwrap()).output().data().to_vec()
}

fn comes_back<T: Real>() {
    let folder = tempfile::tempdir().unwrap();
    for (i, network) in networks::<T>().into_iter().enumerate() {
        let path = folder.path().join(format!("{i}.safetensors"));
        network.save(&path).unwrap();
        let read = Network::<T>::load(&path).unwrap();
        assert_eq!(read.blocks(), network.blocks());
        assert_eq!(read.activations(), network.activations());
        assert_eq!((read.loss, output(&read)), (network.loss, output(&network)));
        assert_eq!(read.to_bytes().unwrap(), network.to_bytes().unwrap());
    }
}

#[test]
fn every_network_comes_back_bit_for_bit() {
    comes_back::<f32>();
    comes_back::<f64>();
}

#[test]
fn precisions_read_each_other_and_cast() {
    for network in networks::<f32>() {
        let wide = network.cast::<f64>().unwrap();
        let bytes = network.to_bytes().unwrap();
        assert_eq!(Network::<f64>::from_bytes(&bytes).unwrap().blocks(), wide.blocks());
        assert_eq!(wide.cast::<f32>().unwrap().to_bytes().unwrap(), bytes);
        let narrow = Network::<f32>::from_bytes(&wide.to_bytes().unwrap()).unwrap();
        assert_eq!(narrow.to_bytes().unwrap(), bytes);
    }
}

/// The bytes with another text in the header.
fn tampered(bytes: &[u8], from: &str, to: &str) -> Vec<u8> {
    let length = u64::from_le_bytes(bytes[..8].try_into().unwrap()) as usize;
    let header = String::from_utf8(bytes[8..8 + length].to_vec()).unwrap();
    assert!(header.contains(from), "{from} is not in {header}");
    let mut header = header.replacen(from, to, 1).into_bytes();
    header.resize(header.len().next_multiple_of(8), b' ');
    [&(header.len() as u64).to_le_bytes()[..], &header, &bytes[8 + length..]].concat()
}

/// The bytes with the checksum that belongs to them: what is wrong is not damage, but was meant so.
fn sealed(mut bytes: Vec<u8>) -> Vec<u8> {
    let before = br#""checksum":"crc32:"#;
    let at = bytes.windows(before.len()).position(|part| part == before).unwrap() + before.len();
    bytes[at..at + 8].copy_from_slice(b"00000000");
    let sum = format!("{:08x}", crc32fast::hash(&bytes));
    bytes[at..at + 8].copy_from_slice(sum.as_bytes());
    bytes
}

#[test]
fn hostile_files_are_refused_in_a_sentence() {
    let all = networks::<f64>();
    let (dense, convolutional, denoiser) =
        (all[0].to_bytes().unwrap(), all[1].to_bytes().unwrap(), all[2].to_bytes().unwrap());
    let huge = (1u64 << 62).to_string();
    let changes: [(&[u8], &str, &str, &str); 15] = [
        (&dense, "proxlift-lifting", "proxlift", "not a network"),
        (&dense, r#""version":"1""#, r#""version":"2""#, "format version 2"),
        (&dense, r#"\"inputs\":7"#, &format!(r#"\"inputs\":{huge}"#), "too large"),
        (&dense, r#"\"inputs\":7"#, r#"\"inputs\":8"#, "do not fit its sizes"),
        (&dense, r#"\"inputs\":7"#, r#"\"inputs\":0"#, "empty or too large"),
        (&dense, r#"\"inputs\":7"#, r#"\"inputs\":-1"#, "layers cannot be read"),
        (&dense, r#"\"dense\""#, r#"\"sparse\""#, "layers cannot be read"),
        (&dense, r#"softmax\""#, r#"hardmax\""#, "cannot be read"),
        (&dense, r#"\"pieces\":2"#, &format!(r#"\"pieces\":{}"#, u64::MAX), "do not fit each other"),
        (&dense, r#"\"planes\":4"#, r#"\"planes\":0"#, "planes can't be split"),
        (&dense, r#"[1.0,0.3,0.1"#, r#"[1.5,0.3,0.1"#, "steeper than 1 is no prox"),
        (&dense, r#"[1.0,0.3,0.1"#, r#"[-1.0,0.3,0.1"#, "slope of an activation is negative"),
        (&convolutional, r#"\"stride\":2"#, r#"\"stride\":0"#, "stride of a convolution is 0"),
        (&convolutional, r#"\"padding\":1"#, &format!(r#"\"padding\":{huge}"#), "too large"),
        (&denoiser, r#"\"kernel\":3"#, r#"\"kernel\":4"#, "do not fit its sizes"),
    ];
    for (bytes, from, to, says) in changes {
        let said = |bytes: &[u8]| Network::<f64>::from_bytes(bytes).err().unwrap().to_string();
        let error = said(&sealed(tampered(bytes, from, to)));
        assert!(error.contains(says), "{from} to {to}: {error}");
        // With its checksum, no change goes that far.
        let error = said(&tampered(bytes, from, to));
        assert!(error.contains(says) || error.contains("damaged"), "{from} to {to}: {error}");
    }
    assert!(Network::<f64>::from_bytes(&dense[..dense.len() - 3]).is_err());
    assert!(Network::<f64>::from_bytes(b"nothing").is_err());
    let mut broken = networks::<f64>().remove(0);
    broken.layers_mut()[0].parameters_mut()[0][0] = f64::NAN;
    let error = Network::<f64>::from_bytes(&broken.to_bytes().unwrap()).err().unwrap().to_string();
    assert!(error.contains("not finite"), "{error}");
}

#[test]
fn what_is_no_prox_is_no_activation() {
    let steep = PiecewiseLinear::new(1, vec![0.5], vec![1.2, 0.3]).unwrap();
    let network =
        Network::<f64>::new(Loss::Squared).layer(Dense::random(2, 1, 1.0, &mut seeded(1)).unwrap(), steep);
    let error = network.output(Dense::random(1, 1, 1.0, &mut seeded(1)).unwrap()).err().unwrap().to_string();
    assert!(error.contains("slope of 1.2") && error.contains("no prox"), "{error}");
    assert!(Dense::<f64>::random(2, 1, f64::NAN, &mut seeded(1)).is_err());
}

#[test]
fn random_layers_keep_the_size_of_what_they_get() {
    let dense = Dense::<f64>::random(400, 300, 2f64.sqrt(), &mut seeded(8)).unwrap();
    let mean: f64 = dense.parameters()[0].iter().map(|w| w * w).sum::<f64>() / 120_000.0;
    assert!((mean * 200.0 - 1.0).abs() < 0.02, "{mean}");
    assert_eq!(dense, Dense::random(400, 300, 2f64.sqrt(), &mut seeded(8)).unwrap());
}

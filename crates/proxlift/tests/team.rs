//! Training in a team of threads, each of which stands for a process: the same bits as by one, whatever is trained, and
//! checkpoints that any team goes on from.
#![allow(missing_docs)]

use proxlift::Result;
use proxlift::dataset::ImageSet;
use proxlift::engine::Cpu;
use proxlift::image::Channels;
use proxlift::image::io::{self, Depth, Picture};
use proxlift::laws::random_field;
use proxlift::lifting::{self, Batch, Dense, LbFb, LbFbOptions, Loss, Rows, Trainer as _};
use proxlift::network::{self, Architecture};
use proxlift::prox::PiecewiseLinear;
use proxlift::team::{Ranks, Team};
use proxlift::training::{
    Auxiliary, BlockOrder, Checkpoint, Config, EpochRecord, Go, Observer, Session, Settings, Trainer,
};
use serde_json::{Value, json};
use std::path::Path;
use std::sync::{Arc, Barrier, Mutex};

/// What a member sends to each of the others.
type Parts = Vec<Vec<u8>>;

/// Members of a team in one process; what they send lies on a board.
struct Thread {
    rank: usize,
    size: usize,
    board: Arc<(Barrier, Mutex<Vec<Parts>>)>,
}

impl Thread {
    fn send(&self, parts: Vec<Vec<u8>>, theirs: &mut [u8]) {
        let (barrier, board) = &*self.board;
        board.lock().unwrap()[self.rank] = parts;
        barrier.wait();
        let all: Vec<u8> = board.lock().unwrap().iter().flat_map(|parts| parts[self.rank].clone()).collect();
        theirs.copy_from_slice(&all);
        barrier.wait();
    }
}

impl Team for Thread {
    fn rank(&self) -> usize {
        self.rank
    }

    fn size(&self) -> usize {
        self.size
    }

    fn exchange(&self, mut own: &[u8], to: &[usize], theirs: &mut [u8], from: &[usize]) {
        assert_eq!((own.len(), theirs.len()), (to.iter().sum(), from.iter().sum()));
        self.send(to.iter().map(|&length| own.split_off(..length).unwrap().to_vec()).collect(), theirs);
    }

    fn gather(&self, own: &[u8], all: &mut [u8], from: &[usize]) {
        assert_eq!(own.len(), from[self.rank]);
        self.send(vec![own.to_vec(); self.size], all);
    }

    fn rest(&self) {
        self.board.0.wait();
    }

    fn queue(&self, _: usize, _: &(dyn Fn(usize) -> Result<()> + Sync)) -> Result<()> {
        unreachable!("nothing is queued here")
    }
}

/// What every member of a team makes of it, each on a thread of its own.
fn together<T: Send>(size: usize, work: impl Fn(&Arc<Ranks>) -> T + Sync) -> Vec<T> {
    let board = Arc::new((Barrier::new(size), Mutex::new(vec![Vec::new(); size])));
    let member = |rank: usize| {
        let ranks = Arc::new(Ranks::new(Arc::new(Thread { rank, size, board: board.clone() })));
        // A pool of its own: members wait for each other.
        rayon::ThreadPoolBuilder::new().num_threads(1).build().unwrap().install(|| work(&ranks))
    };
    std::thread::scope(|scope| {
        let members: Vec<_> = (0..size).map(|rank| scope.spawn(move || member(rank))).collect();
        members.into_iter().map(|member| member.join().unwrap()).collect()
    })
}

struct StopAfter(usize);

impl Observer for StopAfter {
    fn epoch(
        &mut self,
        record: &EpochRecord,
        _: &proxlift::network::Network<f32>,
        _: &dyn Trainer,
    ) -> Result<Go> {
        Ok(if record.epoch >= self.0 { Go::Stop } else { Go::On })
    }
}

fn config(own: &Value) -> Config {
    let tiny = json!({"depth": 4, "features": 4, "patch": 12, "count": 11, "batch": 4, "epochs": 3});
    let map = tiny.as_object().unwrap().clone().into_iter().chain(own.as_object().unwrap().clone());
    Config::resolve(&Settings::from_map(map.collect()).unwrap()).unwrap()
}

/// Trains until epoch `until`, from the checkpoint at `path` if there is one, and leaves one there.
fn train(config: &Config, images: ImageSet, ranks: &Arc<Ranks>, path: &Path, until: usize) {
    let patches = config.patches(Arc::new(images)).unwrap();
    let mut session = Session::new(config, config.network().unwrap(), &patches).unwrap();
    if path.exists() {
        session.resume(Checkpoint::load(path).unwrap()).unwrap();
    }
    ranks.agree(Ok(())).unwrap();
    if ranks.is_first() {
        session.keep_checkpoints(path, "");
    }
    session.run(&Cpu::new().among(ranks.clone()), &mut StopAfter(until)).unwrap();
}

fn painted() -> ImageSet {
    ImageSet::embedded_train(5, 24, Channels::Grey, 0).unwrap()
}

/// Checkpoints apart from the time that they took.
fn assert_same(a: &Path, b: &Path, what: &str) {
    let [mut a, mut b] = [a, b].map(|path| Checkpoint::load(path).unwrap());
    (a.record.seconds, b.record.seconds) = (0.0, 0.0);
    assert!(a == b, "{what}");
}

#[test]
fn any_team_trains_to_the_same_bits() {
    let folder = tempfile::tempdir().unwrap();
    for (i, own) in [
        json!({"preset": "lifted"}),
        json!({"preset": "paper", "batch": 4}),
        json!({"preset": "backtracking", "u-step": "backtracked", "theta-steps": "global"}),
        json!({"metric": "gauss-newton"}),
        json!({"metric": "kronecker", "knots": 3, "own-synthesis": true, "stride": 2, "unrolling": "inertial"}),
        json!({"preset": "lifted", "convex": true, "knots": 3}),
        json!({"preset": "adam", "convex": true}),
    ]
    .iter()
    .enumerate()
    {
        let (config, whole) = (config(own), folder.path().join(format!("whole-{i}")));
        together(1, |ranks| train(&config, painted(), ranks, &whole, 3));
        for size in [2, 3, 5] {
            let path = folder.path().join(format!("{i}-{size}"));
            // Begun by some, gone on with by others, ended by one.
            together(size, |ranks| train(&config, painted(), ranks, &path, 1));
            together(size - 1, |ranks| train(&config, painted(), ranks, &path, 2));
            together(size, |ranks| train(&config, painted(), ranks, &path, 3));
            assert_same(&whole, &path, &format!("{own} by {size}"));
        }
    }
}

#[test]
fn pictures_are_read_by_shares() {
    let folder = tempfile::tempdir().unwrap();
    let pictures = folder.path().join("pictures");
    std::fs::create_dir(&pictures).unwrap();
    for (i, image) in painted().images().iter().enumerate() {
        io::write(pictures.join(format!("{i}.png")), &Picture::new(image.clone(), Depth::Eight)).unwrap();
    }
    std::fs::write(pictures.join("1-broken.png"), "no picture").unwrap();
    let (config, whole) = (config(&json!({"preset": "lifted"})), folder.path().join("whole"));
    let all = || ImageSet::from_folder(&pictures, Channels::Grey).unwrap();
    together(1, |ranks| train(&config, all(), ranks, &whole, 3));
    for size in [2, 3] {
        let path = folder.path().join(format!("{size}"));
        let held = together(size, |ranks| {
            let set = ImageSet::from_folder_among(&pictures, Channels::Grey, ranks).unwrap();
            assert_eq!((set.len(), set.skipped().len()), (5, 1));
            let held = set.images().iter().filter(|image| !image.data().is_empty()).count();
            train(&config, set, ranks, &path, 3);
            held
        });
        assert_eq!(held.iter().sum::<usize>(), 5, "every picture is held once");
        assert!(held.iter().all(|held| *held < 5));
        assert_same(&whole, &path, &format!("by {size}"));
    }
}

/// All layers at once, a range of them by each: the layers of the denoiser, and activations that learn.
#[test]
fn layers_are_spread_over_any_team_to_the_same_bits() {
    let sizes = Architecture { depth: 6, features: 4, kernel: 3, channels: 1 };
    let denoiser = network::Network::<f32>::glorot(sizes, 0.1, 1).unwrap();
    let random =
        |len: usize, seed| -> Vec<f32> { random_field::<f64>(len, seed).iter().map(|v| *v as f32).collect() };
    let rows = |seed| Rows::new(80, random(240, seed)).unwrap();
    let (z, x) = (rows(1), rows(2));
    let chain = || lifting::Network::from_denoiser(&denoiser, 10, 8).unwrap();
    let learned = || {
        let pieces = || PiecewiseLinear::new(2, [0.2, 0.6].repeat(80), [1.0, 0.7, 0.2].repeat(80)).unwrap();
        let map = |seed| Dense::new(80, random(6400, seed).iter().map(|w| w / 6.0).collect(), vec![0.01; 80]);
        let layers = (3..7).fold(lifting::Network::new(Loss::Squared), |network, seed| {
            network.layer(map(seed).unwrap(), pieces())
        });
        layers.output(map(7).unwrap()).unwrap()
    };
    let options = |auxiliary| LbFbOptions {
        auxiliary,
        order: BlockOrder::Simultaneous,
        inner: 7,
        ..LbFbOptions::default()
    };
    for network in [&chain as &(dyn Fn() -> lifting::Network<f32> + Sync), &learned] {
        for auxiliary in [Auxiliary::Persistent, Auxiliary::Anchored] {
            let run = |size: usize| {
                together(size, |ranks| {
                    let mut network = network();
                    let trainer = LbFb::new(&network, options(auxiliary), 3).unwrap();
                    let mut trainer = trainer.among(ranks.clone()).unwrap();
                    // Sample 2 is seen first when the others have been, and without them.
                    let batches = [[0, 1], [2, 0], [1, 2]].map(|indices| {
                        let part = |rows: &Rows<f32>| {
                            Rows::new(80, indices.iter().flat_map(|i| rows.row(*i)).copied().collect())
                        };
                        let (z, x) = (part(&z).unwrap(), part(&x).unwrap());
                        trainer.step(&mut network, Batch { z: &z, x: &x, indices: &indices }, 0.0).unwrap()
                    });
                    trainer.collect(&mut network);
                    (network.blocks().concat(), batches)
                })
            };
            let one = run(1).remove(0);
            assert!(one.1.iter().all(|step| step.energy[7] < step.energy[0]));
            for size in [2, 3, 9] {
                assert!(run(size).iter().all(|all| *all == one), "by {size}, {auxiliary:?}");
            }
        }
    }
    let said = together(2, |ranks| {
        let sweep = LbFb::new(&chain(), LbFbOptions::default(), 3).unwrap();
        sweep.among(ranks.clone()).err().unwrap().to_string()
    });
    assert!(said[0].contains("let all move at once"));
}

#[test]
fn an_error_of_one_is_an_error_of_all() {
    let said = together(3, |ranks| {
        let own =
            if ranks.rank() == 1 { Err(proxlift::Error::invalid("one cannot")) } else { Ok(ranks.rank()) };
        (ranks.agree(own).unwrap_err().to_string(), ranks.ending())
    });
    use proxlift::team::Ending::{Ours, Theirs};
    assert!(said.iter().all(|(said, _)| said == "one cannot"));
    assert_eq!(said.iter().map(|(_, ending)| *ending).collect::<Vec<_>>(), [Theirs, Ours, Theirs]);
    let first = together(3, |ranks| ranks.from_first(|| Ok(vec![0.1, ranks.rank() as f64])).unwrap());
    assert!(first.iter().all(|first| *first == [0.1, 0.0]));
}

//! The layers of a network spread over the members of a team, each of which has a range of them.
//!
//! The member that has layer `k` has `theta_k` and `v_k`, and moves them; it has and moves `u_{k-1}` too, which `v_k` follows.
//! At the border between layers `k` and `k + 1` the step of `u_k`, above it, reads `v_k` from below, and those of `theta_k` and
//! `u_{k-1}`, below it, read `u_k` from above: each crosses once in an iteration, and nothing else does.

use crate::Real;
use crate::lifting::{Network, Pass, Rows};
use crate::team::{Message, Ranks};
use bytemuck::{cast_slice, pod_collect_to_vec};
use std::ops::Range;
use std::sync::Arc;

/// What one member has of so many layers.
#[derive(Clone)]
pub(in crate::lifting) struct LayerShare {
    ranks: Arc<Ranks>,
    layers: usize,
}

/// What crosses the border above a layer: its `v` upwards, or its `u` downwards.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Crossing {
    Up(usize),
    Down(usize),
}

impl LayerShare {
    pub fn new(ranks: Arc<Ranks>, layers: usize) -> Self {
        Self { ranks, layers }
    }

    /// This member's layers.
    pub fn own(&self) -> Range<usize> {
        self.ranks.part(self.layers, self.ranks.rank())
    }

    /// The `u_k` that this member knows: those that it moves, and that above its last layer.
    pub fn known(&self) -> Range<usize> {
        let Range { start, end } = self.own();
        if start == end { 0..0 } else { start.saturating_sub(1)..end.min(self.layers - 1) }
    }

    fn owner(&self, k: usize) -> usize {
        (0..self.ranks.size()).find(|&rank| self.ranks.part(self.layers, rank).contains(&k)).unwrap_or(0)
    }

    /// The layers with a border above them, and who is below it and above it.
    fn borders(&self) -> impl Iterator<Item = (usize, usize, usize)> {
        let owners: Vec<usize> = (0..self.layers).map(|k| self.owner(k)).collect();
        (1..self.layers)
            .filter(move |&k| owners[k] != owners[k - 1])
            .map(|k| (k - 1, self.owner(k - 1), self.owner(k)))
    }

    /// The feed-forward pass, from member to member; of layers of others there is nothing in it.
    pub fn forward<T: Real>(&self, network: &Network<T>, z: &Rows<T>) -> Pass<T> {
        if self.ranks.size() == 1 {
            return network.forward(z);
        }
        let nothing = |k: usize| Rows::zeros(0, network.layers()[k].outputs());
        let mut pass = Pass {
            v: (0..self.layers).map(nothing).collect(),
            u: (0..self.layers - 1).map(nothing).collect(),
        };
        let mut borders = self.borders().peekable();
        for k in 0..self.layers {
            if self.own().contains(&k) {
                pass.v[k] = network.affine(k, pass.input(k, z), z);
                if k + 1 < self.layers {
                    pass.u[k] = network.activate(k, &pass.v[k]);
                }
            }
            if let Some((_, below, above)) = borders.next_if(|border| border.0 == k) {
                let u = &mut pass.u[k];
                let numbers = z.samples() * u.width();
                let message = Message { from: below, to: above, bytes: numbers * size_of::<T>() };
                let (sent, width) = (u.clone(), u.width());
                let give = |_, to: &mut Vec<u8>| to.extend_from_slice(cast_slice(sent.data()));
                self.ranks.deliver(&[message], give, |_, bytes| *u = rows(width, bytes));
            }
        }
        pass
    }

    /// Before a round that moves the `u` of one parity, after one that moved those of the other: what the steps read that
    /// others have moved.
    pub fn trade<T: Real>(
        &self,
        pass: &mut Pass<T>,
        network: &mut Network<T>,
        samples: usize,
        (next, moved): (Option<usize>, Option<usize>),
    ) {
        if self.ranks.size() == 1 {
            return;
        }
        let mut crossings = Vec::new();
        let mut messages = Vec::new();
        for (k, below, above) in self.borders() {
            let width = network.layers()[k].outputs();
            let learned: usize = learned(network, k).iter().map(|block| block.len()).sum();
            if next == Some(k % 2) {
                let bytes = (samples * width + learned) * size_of::<T>();
                messages.push(Message { from: below, to: above, bytes });
                crossings.push(Crossing::Up(k));
            }
            if moved == Some(k % 2) {
                messages.push(Message { from: above, to: below, bytes: samples * width * size_of::<T>() });
                crossings.push(Crossing::Down(k));
            }
        }
        let mut sent: Vec<Vec<u8>> = Vec::new();
        for (crossing, message) in crossings.iter().zip(&messages) {
            let mut bytes = Vec::new();
            match *crossing {
                _ if message.from != self.ranks.rank() => {}
                Crossing::Up(k) => {
                    bytes.extend_from_slice(cast_slice(pass.v[k].data()));
                    learned(network, k).iter().for_each(|b| bytes.extend_from_slice(cast_slice(b)));
                }
                Crossing::Down(k) => bytes.extend_from_slice(cast_slice(pass.u[k].data())),
            }
            sent.push(bytes);
        }
        self.ranks.deliver(
            &messages,
            |i, to| to.extend_from_slice(&sent[i]),
            |i, bytes| match crossings[i] {
                Crossing::Up(k) => {
                    let width = pass.v[k].width();
                    let (v, rest) = bytes.split_at(samples * width * size_of::<T>());
                    pass.v[k] = rows(width, v);
                    let maps = network.layers()[k].parameters().len();
                    let blocks = network.layer_blocks_mut(k).into_iter().skip(maps);
                    copy_all(blocks, rest);
                }
                Crossing::Down(k) => pass.u[k] = rows(pass.u[k].width(), bytes),
            },
        );
    }

    /// One number of each layer, of which this member gives its own.
    pub fn of_layers(&self, own: Vec<f64>) -> Vec<f64> {
        self.ranks.of_parts(own, self.layers)
    }

    /// The sum of everybody's number.
    pub fn total(&self, own: usize) -> usize {
        if self.ranks.size() == 1 {
            return own;
        }
        let all = self.ranks.bytes_of_all(&(own as u64).to_le_bytes()).into_iter();
        all.map(|bytes| u64::from_le_bytes(bytes.try_into().expect("eight bytes")) as usize).sum()
    }

    /// Brings the layers of all to everybody.
    pub fn collect<T: Real>(&self, network: &mut Network<T>) {
        if self.ranks.size() == 1 {
            return;
        }
        let own = self.own().flat_map(|k| network.layer_blocks(k)).flat_map(cast_slice::<T, u8>);
        let own: Vec<u8> = own.copied().collect();
        for (rank, bytes) in self.ranks.bytes_of_all(&own).iter().enumerate() {
            let mut rest = bytes.as_slice();
            for k in self.ranks.part(self.layers, rank) {
                rest = copy_all(network.layer_blocks_mut(k).into_iter(), rest);
            }
        }
    }
}

/// What the activation of layer `k` learns.
fn learned<T: Real>(network: &Network<T>, k: usize) -> Vec<&[T]> {
    network.layer_blocks(k).split_off(network.layers()[k].parameters().len())
}

fn rows<T: Real>(width: usize, bytes: &[u8]) -> Rows<T> {
    Rows::new(width, pod_collect_to_vec(bytes)).expect("whole samples")
}

/// Fills blocks with numbers; what is left of them.
fn copy_all<'b, T: Real>(blocks: impl Iterator<Item = &'b mut [T]>, mut bytes: &[u8]) -> &[u8] {
    for block in blocks {
        let (these, rest) = bytes.split_at(size_of_val(block));
        block.copy_from_slice(&pod_collect_to_vec::<u8, T>(these));
        bytes = rest;
    }
    bytes
}

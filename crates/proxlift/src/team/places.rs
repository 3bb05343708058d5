//! Who works on which sample of a batch.

/// The samples of a batch, by their places in it.
#[derive(Clone, Debug, Default)]
pub(super) struct Places {
    /// The member that has what belongs to the sample: its picture, its persistent `u`.
    pub home: Vec<usize>,
    /// The member that works on it.
    pub at: Vec<usize>,
    /// The place of the sample among those of its member.
    pub local: Vec<usize>,
    /// The number of samples of each member.
    pub counts: Vec<usize>,
}

impl Places {
    /// Spreads samples with these homes evenly over `size` members; as many as possible stay at home.
    pub fn new(home: Vec<usize>, size: usize) -> Self {
        let (least, mut more) = (home.len() / size, home.len() % size);
        let mut room = vec![least; size];
        // Where one more has to go, it goes to those who have too many.
        let at_home = |rank: usize| home.iter().filter(|&&r| r == rank).count();
        for crowded in [true, false] {
            for (rank, room) in room.iter_mut().enumerate() {
                if more > 0 && *room == least && (at_home(rank) > least || !crowded) {
                    (*room, more) = (*room + 1, more - 1);
                }
            }
        }
        let counts = room.clone();
        let mut stay = |&rank: &usize| {
            let stays = room[rank] > 0;
            room[rank] -= usize::from(stays);
            stays
        };
        let stays: Vec<bool> = home.iter().map(&mut stay).collect();
        let mut free = 0;
        let mut at = Vec::with_capacity(home.len());
        for (&home, stays) in home.iter().zip(stays) {
            if !stays {
                while room[free] == 0 {
                    free += 1;
                }
                room[free] -= 1;
            }
            at.push(if stays { home } else { free });
        }
        let mut next = vec![0; size];
        let local = at.iter().map(|&rank| {
            next[rank] += 1;
            next[rank] - 1
        });
        Self { local: local.collect(), home, at, counts }
    }

    /// The places of a member's samples, in their order.
    pub fn of(&self, rank: usize) -> impl Iterator<Item = usize> {
        (0..self.at.len()).filter(move |&s| self.at[s] == rank)
    }
}

#[cfg(test)]
mod tests {
    use super::Places;

    #[test]
    fn samples_are_spread_evenly_and_stay_at_home_where_they_can() {
        for (homes, size, moved) in [
            (vec![0, 1, 0, 1], 2, 0),
            (vec![0, 0, 0, 1], 2, 1),
            (vec![1, 1, 1], 2, 1),
            (vec![2], 3, 0),
            (vec![2, 2], 3, 1),
            (vec![0; 50], 4, 37),
        ] {
            let places = Places::new(homes.clone(), size);
            let most = homes.len().div_ceil(size);
            assert_eq!(places.counts.iter().sum::<usize>(), homes.len());
            for rank in 0..size {
                let own: Vec<usize> = places.of(rank).collect();
                assert!(own.len() == places.counts[rank] && own.len() <= most, "{homes:?}");
                assert!(own.len() >= homes.len() / size);
                assert!(own.iter().enumerate().all(|(local, &s)| places.local[s] == local));
            }
            let away = places.at.iter().zip(&homes).filter(|(at, home)| at != home).count();
            assert_eq!(away, moved, "{homes:?} over {size}");
        }
    }
}

//! One tile of a picture, denoised from the pixels that it sees: for front ends that hand tiles out to others.

use super::method::Work;
use super::prepared::{Prepared, clipped};
use super::progress::Progress;
use super::span::{Span, Tile};
use super::variation;
use crate::image::{Channels, Image};
use crate::network::Network;
use crate::{Result, memory};

impl Prepared<'_> {
    /// The parts that a picture of this size is denoised in, each by itself and anywhere ([`Prepared::denoise_tile`]); one, of
    /// the whole picture, for total variation and where there is nothing to do.
    /// Fails when the work would take days, or a part more memory than there is.
    pub fn tiles(&self, channels: Channels, size: (usize, usize)) -> Result<Vec<Tile>> {
        let Work::Network(network, most) = &self.work else {
            if matches!(self.work, Work::TotalVariation(_)) {
                variation::check_memory(channels, size)?;
            }
            return Ok(vec![Tile { rows: Span::whole(size.0), columns: Span::whole(size.1) }]);
        };
        let pass = self.pass(network, *most, size)?;
        let tile = |(rows, columns)| {
            let (rows, columns) = pass.spans(rows, columns);
            Tile { rows, columns }
        };
        Ok(pass.tiles().iter().map(tile).collect())
    }

    /// The pixels that a tile of a picture of this `size` wants, from the pixels that it sees: with the bits that
    /// [`Prepared::denoise_pixels`] gives them. `progress` may end total variation.
    ///
    /// ```
    /// # use proxlift::{Denoiser, dataset::synthetic::dead_leaves, image::{Channels, noise::add_gaussian}};
    /// use std::ops::ControlFlow;
    /// let noisy = add_gaussian(&dead_leaves(1, 0, 64, 96, Channels::Grey)?, 0.1, 1, 0)?;
    /// let denoiser = Denoiser::best();
    /// let ready = denoiser.prepare_pixels(&noisy)?;
    /// let mut result = noisy.clone();
    /// for tile in ready.tiles(Channels::Grey, (64, 96))? {
    ///     let seen = noisy.crop(tile.rows.seen.clone(), tile.columns.seen.clone());
    ///     let wanted = ready.denoise_tile(&tile, (64, 96), seen, &mut |_, _| ControlFlow::Continue(()))?;
    ///     result.put((tile.rows.wanted.start, tile.columns.wanted.start), &wanted);
    /// }
    /// assert_eq!(result, denoiser.denoise(&noisy)?);
    /// # Ok::<(), proxlift::Error>(())
    /// ```
    pub fn denoise_tile(
        &self,
        tile: &Tile,
        size: (usize, usize),
        seen: Image,
        progress: &mut Progress<'_>,
    ) -> Result<Image> {
        let Tile { rows, columns } = tile;
        refuse!((seen.height(), seen.width()) != (rows.seen.len(), columns.seen.len()) =>
            "a tile sees {} x {} pixels, but {} x {} are given",
            columns.seen.len(), rows.seen.len(), seen.width(), seen.height());
        seen.check_finite()?;
        memory::or_error(|| match &self.work {
            Work::Nothing => Ok(clipped(seen, self.clip)),
            Work::Network(network, most) => self.pass(network, *most, size)?.of_seen(seen, rows, columns),
            Work::TotalVariation(_) | Work::Solved(..) => self.whole(&seen, progress),
        })
    }

    /// The network as it is adapted to the picture, where one does the work: to be looked into.
    pub fn network(&self) -> Option<&Network<f32>> {
        if let Work::Network(network, _) = &self.work { Some(network) } else { None }
    }

    /// What the network is given of a whole picture: with its mirrored border, and counts transformed.
    pub fn seen_by_network(&self, picture: &Image) -> Image {
        let border = self.network().map_or(0, |network| network.border);
        let seen = picture.mirrored((border, border), (border, border));
        if let Some(stabiliser) = &self.stabiliser { stabiliser.forward(seen) } else { seen }
    }
}

"""What napari shows: a few settings, and work off the thread of the window."""

from __future__ import annotations

from collections.abc import Generator
from dataclasses import asdict
from typing import TYPE_CHECKING, Any

import numpy as np
from magicgui.widgets import (
    CheckBox,
    ComboBox,
    Container,
    FloatSlider,
    FloatSpinBox,
    Label,
    ProgressBar,
    PushButton,
)
from napari.layers import Image
from napari.qt.threading import thread_worker
from napari.utils.notifications import show_error
from proxlift._proxlift import __version__

from napari_proxlift.pages import Index, Settings, denoise_pages, estimate, page_count

if TYPE_CHECKING:
    from napari.viewer import Viewer
    from numpy.typing import NDArray

MODELS = ["best", "small", "photo"]
NOISES = ["auto", "gaussian", "poisson", "poisson-gaussian", "camera"]
# What the new layer does not take over, besides its data.
OWN = ("name", "metadata", "multiscale")


class DenoiseWidget(Container[Any]):
    """Estimates the noise of a layer and removes it."""

    def __init__(self, napari_viewer: Viewer) -> None:
        self.viewer = napari_viewer
        self.worker: Any = None
        self.layer = ComboBox(label="layer", choices=self._images)
        self.model = ComboBox(label="model", choices=MODELS, value="best")
        self.noise = ComboBox(label="noise", choices=NOISES, value="auto")
        self.estimated = CheckBox(label="estimate in each page", value=True)
        self.sigma = FloatSpinBox(label="sigma", min=0, max=1e9, step=1e-4, value=0.1, enabled=False)
        self.strength = FloatSlider(label="strength", min=0, max=3, value=1)
        self.measure = PushButton(text="Estimate", tooltip="which noise the page that you see has, and how much")
        self.start = PushButton(text="Denoise")
        self.cancel = PushButton(text="Cancel", enabled=False)
        self.progress = ProgressBar(min=0, value=0, visible=False)
        self.status = Label(value="")
        settings = [self.layer, self.model, self.noise, self.estimated, self.sigma, self.strength]
        super().__init__(widgets=[*settings, self.measure, self.start, self.cancel, self.progress, self.status])
        layers = napari_viewer.layers.events
        for event in (layers.inserted, layers.removed, layers.reordered):
            event.connect(self._renew)
        self.estimated.changed.connect(self._show_sigma)
        self.measure.changed.connect(lambda _: self._estimate())
        self.start.changed.connect(lambda _: self._denoise())
        self.cancel.changed.connect(lambda _: self._cancel())

    def settings(self) -> Settings:
        """What the widget says."""
        sigma = None if self.estimated.value else float(self.sigma.value)
        return Settings(self.model.value, self.noise.value, sigma, float(self.strength.value))

    def _images(self, _: Any) -> list[Image]:
        return [layer for layer in self.viewer.layers if isinstance(layer, Image)]

    def _renew(self) -> None:
        self.layer.reset_choices()

    def _show_sigma(self, estimated: bool) -> None:
        self.sigma.enabled = not estimated

    def _chosen(self) -> Image | None:
        layer = self.layer.value
        if layer is None:
            self.status.value = "Open an image first."
        return layer

    def _estimate(self) -> None:
        layer = self._chosen()
        if layer is None:
            return
        data, rgb = _data(layer), layer.rgb
        index = _seen(layer, self.viewer, page_axes=3 if rgb else 2)
        self._run(thread_worker(estimate, ignore_errors=True)(data, index, rgb=rgb, noise=self.noise.value), self._tell)

    def _tell(self, found: tuple[str, float]) -> None:
        kind, sigma = found
        self.sigma.value = sigma
        self.status.value = f"{kind} noise, sigma {sigma:.3g}"

    def _denoise(self) -> None:
        layer = self._chosen()
        if layer is None:
            return
        data, rgb, settings = _data(layer), layer.rgb, self.settings()
        state = layer.as_layer_data_tuple()[1]
        self.progress.max, self.progress.value, self.progress.visible = page_count(data, rgb=rgb), 0, True

        def finish(result: NDArray[Any] | None) -> None:
            if result is not None:
                self.viewer.add_image(result, **_denoised(state, settings))
                self.status.value = "Done."

        worker = thread_worker(_collect, ignore_errors=True)(data, settings, rgb)
        worker.yielded.connect(lambda done: setattr(self.progress, "value", done))
        self._run(worker, finish)

    def _run(self, worker: Any, finish: Any) -> None:
        """Start a worker, and let nothing else start meanwhile."""
        self.worker = worker
        self._busy(True)
        self.status.value = "Working ..."
        worker.returned.connect(finish)
        worker.errored.connect(self._fail)
        worker.finished.connect(lambda: self._busy(False))
        worker.start()

    def _busy(self, busy: bool) -> None:
        self.measure.enabled = self.start.enabled = not busy
        self.cancel.enabled = busy
        if not busy:
            self.progress.visible = False

    def _cancel(self) -> None:
        """End the work after the page that it is at."""
        self.worker.quit()
        self.status.value = "Cancelled."

    def _fail(self, error: Exception) -> None:
        self.status.value = str(error)
        show_error(str(error))


def _collect(data: Any, settings: Settings, rgb: bool) -> Generator[int, None, NDArray[Any] | None]:
    """Denoise all pages, and tell how many are done."""
    result: NDArray[Any] | None = None
    for done, (index, page) in enumerate(denoise_pages(data, settings, rgb=rgb), 1):
        if result is None:
            result = np.empty(data.shape, page.dtype)
        result[index] = page
        yield done
    return result


def _data(layer: Image) -> Any:
    return layer.data[0] if layer.multiscale else layer.data


def _seen(layer: Image, viewer: Viewer, page_axes: int) -> Index:
    """The page of a layer that the viewer shows."""
    shape = _data(layer).shape
    place = np.floor(np.asarray(layer.world_to_data(viewer.dims.point)) + 0.5).astype(int)
    leading = shape[: len(shape) - page_axes]
    return tuple(int(np.clip(at, 0, size - 1)) for at, size in zip(place, leading))


def _denoised(state: dict[str, Any], settings: Settings) -> dict[str, Any]:
    """The new layer's place and looks, those of the old one, with the settings in its metadata."""
    made = {"version": __version__, **asdict(settings)}
    return {key: value for key, value in state.items() if key not in OWN} | {
        "name": f"{state['name']} denoised",
        "metadata": {**state["metadata"], "proxlift": made},
    }

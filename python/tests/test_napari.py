"""The napari plugin: the core without a window, the widget without a screen."""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import proxlift

PLUGIN = Path(__file__).parents[1] / "napari-proxlift" / "src"
sys.path.insert(0, str(PLUGIN))

from napari_proxlift.pages import Settings, denoise_image, denoise_pages, estimate, page_count  # noqa: E402


def noisy(*shape: int, dtype: Any = np.float32, sigma: float = 0.1) -> np.ndarray:
    """Squares in white noise."""
    rng = np.random.default_rng(1)
    values = rng.normal(0.3, sigma, shape)
    values[..., 20:40, 20:40] += 0.4
    if np.dtype(dtype).kind == "u":
        return np.clip(values * np.iinfo(dtype).max, 0, np.iinfo(dtype).max).astype(dtype)
    return values.astype(dtype)


def test_values_stay_on_the_scale_of_the_layer() -> None:
    for dtype, white in [(np.uint8, 255), (np.uint16, 65535), (np.float32, 1), (np.float64, 1)]:
        image = noisy(64, 72, dtype=dtype)
        clean = denoise_image(image, sigma=0.1 * white, model="small")
        expected = white * proxlift.denoise(image, 0.1, model="small")
        assert clean.dtype == np.float32
        np.testing.assert_array_equal(clean, expected.astype(np.float32))


def test_integers_of_other_types_are_values_as_they_are() -> None:
    image = (1000 * noisy(64, 72)).astype(np.int32)
    expected = proxlift.denoise(image.astype(np.float32), 100.0, model="small")
    np.testing.assert_array_equal(denoise_image(image, sigma=100, model="small"), expected)


def test_colours_keep_their_type_and_their_alpha() -> None:
    image = np.moveaxis(noisy(4, 64, 72, dtype=np.uint8), 0, -1)
    clean = denoise_image(image, sigma=25.5, model="small", rgb=True)
    assert clean.dtype == np.uint8
    np.testing.assert_array_equal(clean[..., 3], image[..., 3])
    expected = proxlift.denoise(image[..., :3], 0.1, model="small", channel_axis=-1)
    np.testing.assert_array_equal(clean[..., :3], np.round(255 * np.clip(expected, 0, 1)))


def test_stacks_page_by_page() -> None:
    stack = noisy(2, 3, 64, 72)
    assert page_count(stack) == 6
    pages = dict(denoise_pages(stack, Settings(model="small")))
    assert list(pages) == list(np.ndindex(2, 3))
    for index, page in pages.items():
        np.testing.assert_array_equal(page, proxlift.denoise(stack[index], model="small"))


def test_pages_are_read_when_their_turn_comes() -> None:
    class Lazy:
        shape = (4, 64, 72)
        read: list[tuple[int, ...]] = []

        def __getitem__(self, index: tuple[int, ...]) -> np.ndarray:
            self.read.append(index)
            return noisy(64, 72)

    pages = denoise_pages(Lazy(), Settings(sigma=0.1, model="small"))
    next(pages)
    assert Lazy.read == [(0,)]


def test_the_estimate_is_in_the_units_of_the_layer() -> None:
    kind, sigma = estimate(noisy(2, 256, 256, dtype=np.uint16, sigma=0.05), (1,))
    assert kind == "gaussian"
    assert sigma == pytest.approx(0.05 * 65535, rel=0.05)


def test_what_is_no_picture_is_refused() -> None:
    with pytest.raises(ValueError, match="choose another layer"):
        denoise_image(np.zeros(5))


class TestWidget:
    """With the model of a viewer, since a window needs OpenGL."""

    @pytest.fixture
    def viewer(self) -> Iterator[Any]:
        os.environ.setdefault("QT_QPA_PLATFORM", "offscreen")
        components = pytest.importorskip("napari.components", reason="napari is not installed")
        qt = pytest.importorskip("qtpy.QtWidgets", reason="Qt is not installed", exc_type=ImportError)
        application = qt.QApplication.instance() or qt.QApplication([])
        yield components.ViewerModel()
        application.processEvents()

    @pytest.fixture
    def widget(self, viewer: Any) -> Any:
        from napari_proxlift.widget import DenoiseWidget

        widget = DenoiseWidget(viewer)
        widget.model.value = "small"
        return widget

    def press(self, widget: Any, button: str) -> None:
        """Press a button and wait until the work is done."""
        getattr(widget, button).changed.emit(True)
        self.wait(widget)

    def wait(self, widget: Any) -> None:
        from qtpy.QtTest import QTest

        for _ in range(1000):
            if widget.start.enabled:
                return
            QTest.qWait(10)
        pytest.fail("the work does not end")

    def test_a_new_layer_in_the_place_of_the_old_one(self, viewer: Any, widget: Any) -> None:
        stack = noisy(3, 64, 72, dtype=np.uint16)
        place = {"scale": (2.0, 0.5, 0.5), "translate": (1.0, 2.0, 3.0), "colormap": "green"}
        layer = viewer.add_image(stack, name="cells", metadata={"lens": "63x"}, **place)
        widget.strength.value = 0.5
        self.press(widget, "start")
        new = viewer.layers["cells denoised"]
        np.testing.assert_array_equal(new.data, denoise_image(stack, model="small", strength=0.5))
        np.testing.assert_array_equal(new.scale, layer.scale)
        np.testing.assert_array_equal(new.translate, layer.translate)
        assert (new.colormap.name, new.contrast_limits) == ("green", layer.contrast_limits)
        assert new.metadata["lens"] == "63x"
        made = new.metadata["proxlift"]
        assert (made["model"], made["strength"], made["sigma"]) == ("small", 0.5, None)
        assert "proxlift" not in layer.metadata
        assert widget.progress.value == 3

    def test_colours(self, viewer: Any, widget: Any) -> None:
        image = np.ascontiguousarray(np.moveaxis(noisy(3, 64, 72, dtype=np.uint8), 0, -1))
        viewer.add_image(image, name="photograph", rgb=True)
        widget.estimated.value = False
        widget.sigma.value = 25.5
        self.press(widget, "start")
        new = viewer.layers["photograph denoised"]
        assert new.rgb
        np.testing.assert_array_equal(new.data, denoise_image(image, model="small", sigma=25.5, rgb=True))

    def test_the_estimate_is_that_of_the_page_in_view(self, viewer: Any, widget: Any) -> None:
        stack = np.stack([noisy(128, 128, sigma=sigma) for sigma in (0.05, 0.1, 0.2)])
        viewer.add_image(stack, scale=(3, 1, 1))
        viewer.dims.set_current_step(0, 2)
        self.press(widget, "measure")
        assert widget.sigma.value == pytest.approx(estimate(stack, (2,))[1], rel=1e-3)
        assert "gaussian" in widget.status.value

    def test_the_work_can_be_cancelled(self, viewer: Any, widget: Any) -> None:
        viewer.add_image(noisy(500, 64, 72))
        widget.start.changed.emit(True)
        assert not widget.start.enabled and widget.cancel.enabled
        widget.cancel.changed.emit(True)
        self.wait(widget)
        assert len(viewer.layers) == 1 and widget.progress.value < 500

    def test_errors_are_told(self, viewer: Any, widget: Any) -> None:
        viewer.add_image(np.full((64, 72), np.nan, np.float32), contrast_limits=(0, 1))
        self.press(widget, "start")
        assert "NaN" in widget.status.value and len(viewer.layers) == 1

    def test_without_a_layer_nothing_happens(self, widget: Any) -> None:
        self.press(widget, "start")
        assert widget.status.value == "Open an image first."

    def test_the_manifest_names_the_widget(self) -> None:
        npe2 = pytest.importorskip("npe2", reason="npe2 is not installed")
        manifest = npe2.PluginManifest.from_file(PLUGIN / "napari_proxlift" / "napari.yaml")
        manifest.validate_imports()
        (widget,) = manifest.contributions.widgets
        assert widget.display_name == "Denoise"

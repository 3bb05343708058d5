"""Noise removal for napari: `denoise_image` needs no window, `widget` is what napari shows."""

from napari_proxlift.pages import Settings, denoise_image, denoise_pages, estimate

__all__ = ["Settings", "denoise_image", "denoise_pages", "estimate"]

"""Exported models compute in ONNX Runtime what proxlift computes itself."""

import json
import struct

import numpy as np
import pytest

import proxlift

onnx = pytest.importorskip("onnx")
onnxruntime = pytest.importorskip("onnxruntime")

TOLERANCE = 1e-5
SIZES = [(31, 31), (37, 65), (1, 1), (5, 3)]
SHIPPED = [("small", 1), ("best", 1), ("small", 3), ("best", 3), ("photo", 3)]
UNROLLINGS = [
    "dual-forward-backward",
    "inertial",
    "chambolle-pock",
    "chambolle-pock-accelerated",
    "averaged-dual-forward-backward",
]
DEPTH, FEATURES, KERNEL = 5, 6, 3


def checked(path):
    """The checked model, ready to run."""
    model = onnx.load(path)
    onnx.checker.check_model(model, full_check=True)
    inferred = onnx.shape_inference.infer_shapes(model, check_type=True, strict_mode=True, data_prop=True)
    (output,) = inferred.graph.output
    (image, *_) = inferred.graph.input
    assert output.type == image.type
    return onnxruntime.InferenceSession(path, providers=["CPUExecutionProvider"])


def pictures(batch, channels, size, seed=0):
    generator = np.random.default_rng(seed)
    smooth = np.add.outer(np.linspace(0, 0.5, size[0]), np.linspace(0, 0.5, size[1]))
    return (smooth + generator.normal(0, 0.15, (batch, channels, *size))).astype(np.float32)


def ours(model, images, sigma):
    """What proxlift makes of images [N, C, H, W]."""
    if model.channels == 1:
        return model.denoise(images[:, 0], sigma, clip=False)[:, None]
    return model.denoise(images, sigma, channel_axis=1, clip=False)


def assert_same(model, path, sizes=SIZES):
    model.to_onnx(path)
    run = checked(path).run
    for size in sizes:
        for batch in (1, 3):
            images = pictures(batch, model.channels, size)
            inputs, sigma = {"image": images}, None
            if model.sigma > 0:
                sigma = np.array([0.08, 0.21, 0.0] if batch == 3 else [0.1], np.float32)
                inputs["sigma"] = sigma
            (theirs,) = run(None, inputs)
            assert theirs.dtype == np.float32 and theirs.shape == images.shape
            np.testing.assert_allclose(theirs, ours(model, images, sigma), rtol=0, atol=TOLERANCE)
            if sigma is not None and batch == 3:
                np.testing.assert_array_equal(theirs[2], images[2])
                # Not so of a single pixel, which some activations leave alone.
                assert size == (1, 1) or np.abs(theirs[0] - images[0]).max() > 1e-3


def arrays(knots=None, channels=1, seed=1):
    """A network with random filters, and the clip, or learned activations with so many knots."""
    generator = np.random.default_rng(seed)
    shape = (DEPTH + 1, FEATURES, channels, KERNEL, KERNEL)
    theta = generator.normal(0, 0.8 / (KERNEL * np.sqrt(channels)), shape)
    parts = {"theta": theta, "tau": generator.uniform(0.4, 0.6, DEPTH - 1)}
    if knots:
        parts["knots"] = np.sort(generator.uniform(0, 0.3, (DEPTH - 1, FEATURES, knots)))
        parts["knots"][0, 0, 0] = 0
        parts["slopes"] = generator.uniform(0, 1, (DEPTH - 1, FEATURES, knots + 1))
    else:
        parts["lam"] = generator.uniform(0.02, 0.2, FEATURES)
    return {name: part.astype(np.float32) for name, part in parts.items()}


@pytest.mark.parametrize(("name", "channels"), SHIPPED)
def test_shipped_models(name, channels, tmp_path):
    assert_same(proxlift.Model.load(name, channels=channels), str(tmp_path / "model.onnx"))


@pytest.mark.parametrize("knots", [None, 3], ids=["clip", "learned"])
@pytest.mark.parametrize("bounded", [False, True], ids=["free", "bounded"])
@pytest.mark.parametrize("border", [0, 4])
@pytest.mark.parametrize("unrolling", UNROLLINGS)
def test_every_unrolling(unrolling, border, bounded, knots, tmp_path):
    for sigma, channels in ((0.1, 1), (0.0, 3)):
        settings = {"unrolling": unrolling, "bounded": bounded, "border": border, "sigma": sigma}
        model = proxlift.Model.from_arrays(**arrays(knots, channels), **settings)
        assert_same(model, str(tmp_path / f"{channels}.onnx"), SIZES[1:])


def test_one_threshold_for_all(tmp_path):
    parts = arrays() | {"lam": np.full(FEATURES, 0.07, np.float32)}
    assert_same(proxlift.Model.from_arrays(**parts, sigma=0.1), str(tmp_path / "model.onnx"))


def model_with(activations):
    """A model whose layers have these activations, which only its file can say."""
    parts = arrays()
    tensors = {f"theta_{k}": theta for k, theta in enumerate(parts["theta"])} | {"tau": parts["tau"]}
    sizes = {"depth": DEPTH, "features": FEATURES, "kernel": KERNEL, "channels": 1}
    metadata = {"format": "proxlift", "version": 3, "sigma": 0.1, "provenance": {}, "architecture": sizes}
    metadata["activations"] = activations
    header, start = {"__metadata__": {key: text(value) for key, value in metadata.items()}}, 0
    for name, values in tensors.items():
        end = start + values.nbytes
        header[name] = {"dtype": "F32", "shape": values.shape, "data_offsets": [start, end]}
        start = end
    head = json.dumps(header).encode()
    return proxlift.Model.from_bytes(
        struct.pack("<Q", len(head)) + head + b"".join(values.tobytes() for values in tensors.values())
    )


def text(value):
    return value if isinstance(value, str) else json.dumps(value)


GROUPS = {"planes": FEATURES, "size": 2, "thresholds": [0.05, 0.1, 0.0]}


@pytest.mark.parametrize(
    "activation",
    [
        {"box-clip": {"lo": [-0.1], "hi": [0.05]}},
        {"box-clip": {"lo": [-0.1, -0.2] * 3, "hi": [0.05, 0.0, 0.2] * 2}},
        {"soft-threshold": {"thresholds": [0.05]}},
        {"soft-threshold": {"thresholds": [0.05, 0.0, 0.02] * 2}},
        {"l2-ball": {"groups": GROUPS}},
        {"l2-ball": {"groups": GROUPS | {"size": 3, "thresholds": [0.05]}}},
        {"group-l2": {"ball": {"groups": GROUPS}}},
        {"relu": None},
        {"identity": None},
    ],
    ids=lambda activation: next(iter(activation)),
)
def test_every_activation(activation, tmp_path):
    assert_same(model_with([activation] * (DEPTH - 1)), str(tmp_path / "model.onnx"), SIZES[1:])


def test_extreme_levels_give_numbers(tmp_path):
    path = str(tmp_path / "model.onnx")
    images = pictures(6, 1, (9, 14))
    sigma = np.array([0, 1e-45, 1e-38, 1e-20, 1.0, 1e6], np.float32)
    for bounded in (False, True):
        proxlift.Model.from_arrays(**arrays(3), bounded=bounded, border=4, sigma=0.1).to_onnx(path)
        (denoised,) = checked(path).run(None, {"image": images, "sigma": sigma})
        assert np.isfinite(denoised).all()
        np.testing.assert_array_equal(denoised[0], images[0])


def test_what_the_file_says(tmp_path):
    path = str(tmp_path / "model.onnx")
    model = proxlift.Model.from_arrays(**arrays(), sigma=0.1, unrolling="inertial", provenance={"seed": "1"})
    model.to_onnx(path)
    file = onnx.load(path)
    props = {prop.key: prop.value for prop in file.metadata_props}
    assert (props["unrolling"], float(props["sigma"])) == ("inertial", 0.1)
    assert json.loads(props["provenance"]) == {"seed": "1"}
    assert file.producer_name == "proxlift" and file.producer_version
    shapes = {value.name: value.type.tensor_type.shape.dim for value in file.graph.input}
    shapes = {name: [dim.dim_param or dim.dim_value for dim in dims] for name, dims in shapes.items()}
    assert shapes == {"image": ["N", 1, "H", "W"], "sigma": ["N"]}
    stored = {tensor.name: onnx.numpy_helper.to_array(tensor) for tensor in file.graph.initializer}
    np.testing.assert_array_equal(np.stack([stored[f"theta_{k}"] for k in range(DEPTH + 1)]), model.theta)

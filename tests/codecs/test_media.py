"""Sound and video."""

import numpy as np
import pytest

import ingot
from ingot.codecs import codec_of


def sound(dtype, shape=(700, 2)):
    noise = np.random.default_rng(0).normal(0, 0.1, shape)
    return (noise if dtype.startswith("float") else noise * 2**14).astype(dtype)


@pytest.mark.parametrize(
    ("kind", "dtype"),
    [("wav", "int16"), ("wav", "int32"), ("wav", "float32"), ("wav", "float64"), ("flac", "int16")],
)
def test_sounds_come_back_without_loss(tmp_path, kind, dtype):
    values = [(sound(dtype), 16_000), (sound(dtype, (9,)), 44_100)]
    with ingot.DatasetWriter(tmp_path / "x.ingot", {"s": kind, "all": f"{kind}[]"}) as writer:
        writer.extend({"s": value, "all": values} for value in values)
        writer.append({"s": codec_of(kind).encode(values[0]), "all": []})
    ds = ingot.open(tmp_path / "x.ingot")
    batch = ds[[0, 1, 2]]["s"]
    for k, (samples, rate) in enumerate([*values, values[0]]):
        for found in (ds[k]["s"], batch[k]):
            assert (found[0].dtype, found[1]) == (samples.dtype, rate)
            assert np.array_equal(found[0], samples)
    assert [rate for _, rate in ds[0]["all"]] == [16_000, 44_100]


@pytest.mark.parametrize(
    ("kind", "value", "words"),
    [
        ("wav", np.zeros(5), "expected a pair of samples and rate, got ndarray"),
        ("wav", (np.zeros((2, 2, 2), np.int16), 8000), r"shape \(2, 2, 2\)"),
        ("wav", (np.zeros(5, np.uint8), 8000), "got shape"),
        ("wav", (np.zeros(0, np.int16), 8000), "at least one sample"),
        ("wav", (np.zeros(5, np.int16), 0), "expected a rate"),
        ("wav", (np.zeros(5, np.int16), 2**40), "expected a rate"),
        ("wav", (np.zeros((2, 5000), np.int16), 8000), r"samples of shape \(2, 5000\)"),
        ("flac", (np.zeros(5, np.float32), 8000), "in int16"),
        ("mp4", np.zeros((4, 4, 3), np.uint8), "a video of frames"),
        ("mp4", np.zeros((2, 4, 4, 3)), "a video of frames"),
        ("mp4", np.zeros((2, 5, 4, 3), np.uint8), "an even height and width"),
        ("mp4", np.zeros((0, 4, 4, 3), np.uint8), "even height and width"),
    ],
)
def test_invalid_audio_and_video_are_rejected(kind, value, words):
    with pytest.raises((TypeError, ValueError), match=words):
        codec_of(kind).encode(value)


def test_a_sound_in_another_format_is_rejected():
    flac = codec_of("flac").encode((sound("int16"), 8000))
    with pytest.raises(ValueError, match="has the format FLAC"):
        codec_of("wav").decode(flac)


def test_audio_that_claims_to_be_long_costs_nothing():
    flac = bytearray(codec_of("flac").encode((sound("int16"), 8000)))
    flac[21:26] = b"\xff" * 5  # The length, in samples.
    with pytest.raises(ValueError, match=r"\w"):
        codec_of("flac").decode(bytes(flac))


def test_videos_are_arrays_of_frames(tmp_path):
    steps = np.arange(12, dtype=np.uint8)[:, None, None, None]
    frames = np.broadcast_to(steps * 20, (12, 32, 48, 3)).copy()
    with ingot.DatasetWriter(tmp_path / "x.ingot", {"v": "mp4"}) as writer:
        writer.append({"v": frames})
        writer.append({"v": codec_of("mp4").encode(frames)})
    ds = ingot.open(tmp_path / "x.ingot")
    for found in (ds[0]["v"], *ds[[0, 1]]["v"]):
        assert (found.shape, found.dtype) == (frames.shape, np.uint8)
        assert np.abs(found.astype(int) - frames).max() <= 4


def test_a_video_that_is_truncated_is_rejected():
    video = codec_of("mp4").encode(np.zeros((3, 16, 16, 3), np.uint8))
    for part in (video[:100], video[: len(video) // 2]):
        with pytest.raises(ValueError, match=r"\w"):
            codec_of("mp4").decode(part)

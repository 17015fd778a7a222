"""The tiny model: files that others read, the same everywhere, with weights wide enough for tokens to differ."""

from __future__ import annotations

import hashlib
import json
import math
import struct

from patchkit.rig.tiny import VOCABULARY, model_files

FILES = model_files()


def tensors() -> dict[str, tuple[list[int], list[float]]]:
    """The safetensors file, read by its published layout: u64 length, JSON header, data."""
    data = FILES["model.safetensors"]
    (length,) = struct.unpack("<Q", data[:8])
    header = json.loads(data[8 : 8 + length])
    assert header.pop("__metadata__") == {"format": "pt"}
    body = data[8 + length :]
    found, place = {}, 0
    for name, entry in header.items():
        begin, end = entry["data_offsets"]
        assert (entry["dtype"], begin) == ("BF16", place)
        # bfloat16 is the upper half of a float32.
        values = [struct.unpack("<f", b"\0\0" + body[at : at + 2])[0] for at in range(begin, end, 2)]
        assert len(values) == math.prod(entry["shape"])
        found[name] = (entry["shape"], values)
        place = end
    assert place == len(body)
    return found


def test_the_weights_are_those_of_the_configuration() -> None:
    config = json.loads(FILES["config.json"])
    read = tensors()
    assert (config["architectures"], config["vocab_size"]) == (["GemmaForCausalLM"], VOCABULARY)
    hidden, inner, heads = config["hidden_size"], config["intermediate_size"], config["num_attention_heads"]
    shapes = {name: shape for name, (shape, _) in read.items()}
    assert shapes["model.embed_tokens.weight"] == [VOCABULARY, hidden]
    assert shapes["model.layers.1.mlp.down_proj.weight"] == [hidden, inner]
    assert shapes["model.layers.0.self_attn.q_proj.weight"] == [heads * config["head_dim"], hidden]
    assert len(shapes) == 2 + 9 * config["num_hidden_layers"]
    # The kernel's tables know heads of 128; the model's own tokens are all in range.
    assert config["head_dim"] == 128
    assert max(config["bos_token_id"], config["eos_token_id"], config["pad_token_id"]) < VOCABULARY


def test_the_weights_are_wide() -> None:
    for name, (_, values) in tensors().items():
        spread = math.sqrt(sum(value * value for value in values) / len(values))
        expected = 0.25 if "embed" in name else 0.6 if "o_proj" in name or "down" in name else 0.1
        expected = 0.15 if name.endswith(("q_proj.weight", "k_proj.weight", "v_proj.weight")) else expected
        expected = 0.15 if "gate" in name or "up_proj" in name else expected
        assert abs(spread / expected - 1) < 0.25, name


def test_it_is_the_same_in_every_python() -> None:
    digest = hashlib.sha256(FILES["model.safetensors"]).hexdigest()
    assert digest == "b435156209e7eae6bdbb661a6e096fd6474c49d7d98ecdd7b75f5f605e0cb24b"
    assert model_files() == FILES


def test_the_tokenizer_has_a_word_for_every_token() -> None:
    words = json.loads(FILES["tokenizer.json"])["model"]["vocab"]
    assert sorted(words.values()) == list(range(VOCABULARY))
    assert {"y", "e", "s", " ", "<bos>"} <= set(words)

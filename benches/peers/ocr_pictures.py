"""RapidOCR's side of `read_pictures`: `ocr_pictures.py WIDTH HEIGHT PICTURES.rgb`, one line of JSON for each picture."""

import json
import sys
import time

import numpy
from rapidocr_onnxruntime import RapidOCR

width, height, path = int(sys.argv[1]), int(sys.argv[2]), sys.argv[3]
pictures = numpy.fromfile(path, dtype=numpy.uint8).reshape(-1, height, width, 3)
reader = RapidOCR(intra_op_num_threads=2)
for picture in pictures:
    began = time.perf_counter()
    found, _ = reader(numpy.ascontiguousarray(picture[:, :, ::-1]))  # it wants blue first
    print(json.dumps({"seconds": time.perf_counter() - began, "lines": [line[1] for line in found or []]}))

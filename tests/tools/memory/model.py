"""A model for embeddings that knows the texts of a file: their vectors were made once by a real one."""

import base64
import json
import struct
import sys

known = json.load(open(sys.argv[1], encoding="utf-8"))["vectors"]


def vector(text):
    packed = base64.b64decode(known[text])
    return struct.unpack(f"{len(packed)}b", packed)


for line in sys.stdin:
    texts = json.loads(line)["input"]
    missing = [text for text in texts if text not in known]
    if missing:
        answer = {"error": f"no vector is known of {missing[0]!r}"}
    else:
        answer = {"data": [{"index": place, "embedding": vector(text)} for place, text in enumerate(texts)]}
    print(json.dumps(answer), flush=True)

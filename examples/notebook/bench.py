import hashlib
import json
import time

import idna

NAMES = [f"straße-{number}.example.org" for number in range(40)] * 25


def once():
    began = time.process_time()
    encoded = [idna.encode(name) for name in NAMES]
    return len(NAMES) / (time.process_time() - began), encoded


once()
rates = sorted(once()[0] for _ in range(3))
digest = hashlib.sha256(b"".join(once()[1])).hexdigest()
print(json.dumps({"names": rates[1], "digest": digest}))

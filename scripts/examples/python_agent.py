#!/usr/bin/env python3
"""An agent that charges an order exactly once although it crashes, and that uses a memory.

    MUNIMENT_DATA=DIR python3 scripts/examples/python_agent.py [crash]     crash: exit after the charge

Requires `muniment` in the PATH, which starts the daemon, and clients/python installed, in PYTHONPATH or in this source tree.
"""
from __future__ import annotations

import os
import pathlib
import sys

sys.path.append(str(pathlib.Path(__file__).resolve().parents[2] / "clients" / "python"))
import muniment  # noqa: E402  (found through the path above)


def charge(order: str) -> dict[str, int]:
    print(f"charged {order}", flush=True)
    return {"receipt": 4711}


def main() -> int:
    with muniment.run(agent="shop", goal="sell", run_id="order-17") as run:
        paid = run.step("charge", charge, "order-17")   # once per run, also after a restart
        if sys.argv[1:] == ["crash"]:
            os._exit(os.EX_SOFTWARE)                    # like a kill: nothing is closed or ended
        print("receipt", paid["receipt"])
        muniment.remember("home", "Kim lives in Porto.", source=f"run://{run.run_id}")
        found = muniment.recall("where does Kim live", budget=500)
        for passage, citation in zip(found["pack"]["passages"], found["citations"]):
            print(passage["text"], citation["pointer"])
    return os.EX_OK


if __name__ == "__main__":
    sys.exit(main())

#!/usr/bin/env python3
"""Helper of scripts/demo: four clients append until the daemon is killed and save the acknowledgements; with --check,
compares them with the log.

    demo_stream.py DATA FILE [--check]
"""
import pathlib
import sys
import threading

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / "clients" / "python"))
import muniment  # noqa: E402  (found through the path above)


def stream(data: str, acked: "list[str]") -> None:
    with muniment.connect(data, retry_for_s=0) as client:
        try:
            for number in range(1_000_000):
                receipt = client.append("demo", "x.demo.counted", {"number": number})
                acked.append(f"{receipt['seq']} {receipt['event_id']} {receipt['run_hash']}")
        except muniment.MunimentError:
            return   # the daemon was killed; unacknowledged events do not count


def check(data: str, lines: "list[str]") -> None:
    lost = 0
    with muniment.connect(data) as client:
        known = {}
        cursor = None
        while True:
            page = client.call("event.list", run_id="demo", types=["x.demo.counted"], limit=1000,
                               **({"cursor": cursor} if cursor else {}))
            known.update({str(event["seq"]): event for event in page["events"]})
            cursor = page.get("cursor")
            if not cursor:
                break
    for line in lines:
        seq, event_id, run_hash = line.split()
        event = known.get(seq)
        lost += event is None or event["event_id"] != event_id or event["run_hash"] != run_hash
    print(f"{len(lines)} acknowledged before the kill, {len(lines) - lost} in the log with the same hash, {lost} lost")
    if lost or not lines:
        sys.exit(1)


def main() -> None:
    data, file = sys.argv[1], pathlib.Path(sys.argv[2])
    if "--check" in sys.argv:
        return check(data, file.read_text().splitlines())
    acked: "list[str]" = []
    clients = [threading.Thread(target=stream, args=(data, acked)) for _ in range(4)]
    for client in clients:
        client.start()
    for client in clients:
        client.join()
    file.write_text("".join(line + "\n" for line in acked))


if __name__ == "__main__":
    main()

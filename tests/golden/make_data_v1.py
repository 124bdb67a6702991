#!/usr/bin/env python3
"""Makes tests/golden/data-v1.tar.zst: a small data folder of version 1, after an orderly stop, which every later version must
start, verify and rehydrate. The file is made once for a released version, and again only for changes before the release.

    tests/golden/make_data_v1.py
"""
import json
import pathlib
import subprocess
import sys

HERE = pathlib.Path(__file__).resolve().parent
sys.path.insert(0, str(HERE.parent / "functional"))
import support  # noqa: E402  (found through the path above)

RUNS = ("plain", "halted", "recovered")


def fill(client: support.muniment.Client) -> None:
    """A run of each kind: events of many types, artifacts, a manifest, claims, evidence, a snapshot in the middle."""
    for run in RUNS:
        client.call("run.start", run_id=run, agent={"name": "golden"}, goal="be there in a year", labels={"kind": run})
        client.append(run, "message.added", {"message_id": "m1", "role": "user", "content": [{"type": "text", "content": "grüß Gott ✓"}]})
        client.append(run, "tool.called", {"call_id": "c1", "name": "fs.read", "kind": "function", "arguments": {"n": 1.5, "e": 1e300}})
        client.append(run, "state.patched", {"format": "merge", "patch": {"notes": ["a"], "z": 1, "a": {"b": "c"}}})
        artifact = client.put(run, f"the evidence of {run}\n".encode() * 100, mime_type="text/plain")
        client.call("manifest.put", run_id=run, manifest={"items": [{"from_run_seq": 0, "to_run_seq": 2, "why": "all of it"}]})
        client.call("claim.record", run_id=run, text="it was read", pointers=[f"artifact://{run}/{artifact['artifact_id']}"])
        client.call("evidence.record", run_id=run, type="review", content={"text": "looked at it"})
        client.call("snapshot.take", run_id=run)
        client.append(run, "x.golden.noted", {"after": "the snapshot"})


def halt(client: support.muniment.Client, files: pathlib.Path, run: str) -> None:
    """Removes the artifact until the run is halted."""
    artifact = client.call("artifact.list", run_id=run)["artifacts"][0]
    kept = (files / artifact["path"]).read_bytes()
    (files / artifact["path"]).unlink()
    client.call("pointer.resolve", pointers=[f"artifact://{run}/{artifact['artifact_id']}"], run_id=run, critical=True)
    (files / artifact["path"]).write_bytes(kept)


def main() -> None:
    daemon = support.Daemon().start()
    try:
        with daemon.client() as client:
            fill(client)
            halt(client, daemon.data / "artifacts", "halted")
            halt(client, daemon.data / "artifacts", "recovered")
            client.call("run.recover", run_id="recovered", why="it was found again")
            client.call("run.end", run_id="plain", outcome="success")
        daemon.stop()
        daemon.start()
        with daemon.client() as client:
            states = {run: client.rehydrate(run)["state_hash"] for run in RUNS}
        daemon.stop()
        subprocess.run(["tar", "-C", str(daemon.folder), "--zstd", "-cf", str(HERE / "data-v1.tar.zst"), "--exclude=*.sock",
                        "--exclude=munimentd.lock", "--exclude=server.log", "--owner=0", "--group=0", "data"],
                       check=True, env={"ZSTD_CLEVEL": "19", "PATH": "/usr/bin:/bin"})
        (HERE / "data-v1.json").write_text(json.dumps({"states": states}, indent=2) + "\n")
    finally:
        daemon.destroy()


if __name__ == "__main__":
    main()
